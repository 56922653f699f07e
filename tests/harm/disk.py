"""Faults of the disk that a training is recorded on."""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import shutil
import sqlite3
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from tests.harm.scene import Fault, NotHere, Scene, mount_tmpfs

_SET_FLAGS, _IMMUTABLE = 0x40086602, 0x10
OWN = "{records}/own.db"  # a recording of `track()` itself
# What belongs to a recording that could not be ended.
BESIDE = tuple(f"{name}.db-{end}" for name in ("run", "own") for end in ("wal", "shm", "journal"))


def no_byte_more(scene: Scene) -> None:
    hard = resource.prlimit(scene.process.pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(scene.process.pid, resource.RLIMIT_FSIZE, (0, hard))
    scene.goes_on()


def fill(scene: Scene) -> None:
    """Fill the disk of the recording to the last byte."""
    with open(scene.records / "fill", "wb", buffering=0) as file, contextlib.suppress(OSError):
        for size in (2**16, 2**12, 1):
            with contextlib.suppress(OSError):
                while file.write(b"x" * size):
                    pass
    scene.goes_on()
    scene.look()
    (scene.records / "fill").unlink()


def fill_with_names(scene: Scene) -> None:
    """No file more can be made."""
    names = [scene.records / f"fill{number}" for number in range(1000)]
    with contextlib.suppress(OSError):
        for name in names:
            name.touch()
    scene.goes_on()
    for name in names:
        name.unlink(missing_ok=True)


def immutable(scene: Scene) -> None:
    """Nothing in the folder can be made, changed or removed any more, not even by root."""
    for file in (*scene.records.iterdir(), scene.records):
        try:
            with _opened(file) as number:
                fcntl.ioctl(number, _SET_FLAGS, struct.pack("l", _IMMUTABLE))
        except OSError as error:
            raise NotHere(f"nothing can be made read-only here: {error}") from None
    scene.goes_on()


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[int]:
    number = os.open(file, os.O_RDONLY)
    try:
        yield number
    finally:
        os.close(number)


def removed(scene: Scene) -> None:
    shutil.rmtree(scene.records)
    scene.goes_on()


def moved(scene: Scene) -> None:
    scene.records.rename(scene.folder / "moved")
    scene.goes_on()


def replaced(scene: Scene) -> None:
    """Files of somebody else under the names of the recording."""
    for file in list(scene.records.iterdir()):
        file.unlink()
        file.write_bytes(b"of somebody else" * 1000)
    scene.goes_on()
    for file in scene.records.iterdir():
        assert file.read_bytes() == b"of somebody else" * 1000, "the file of somebody else changed"
        file.unlink()


def cut(scene: Scene) -> None:
    os.truncate(scene.path, 0)
    scene.goes_on()


def cut_log(scene: Scene) -> None:
    os.truncate(scene.path.with_name("run.db-wal"), 0)
    scene.goes_on()


def cut_shared(scene: Scene) -> None:
    """The one file that SQLite maps: whoever reads it then is killed by SIGBUS."""
    os.truncate(scene.path.with_name("run.db-shm"), 0)
    scene.goes_on()


def overwritten(scene: Scene) -> None:
    for file in scene.records.iterdir():
        if not file.name.endswith("-shm"):
            file.write_bytes(os.urandom(file.stat().st_size))
    scene.goes_on()


def locked(scene: Scene, name: str = "run.db", seconds: float = 8.0) -> None:
    path = scene.records / name
    with closing(sqlite3.connect(path, isolation_level=None, timeout=60)) as other:
        other.execute("BEGIN EXCLUSIVE")
        until = time.monotonic() + min(seconds, 4 * scene.held)
        scene.goes_on()
        scene.look()
        time.sleep(max(0.0, until - time.monotonic()))


def locked_to_the_end(scene: Scene) -> None:
    other = scene.undo.enter_context(
        closing(sqlite3.connect(scene.path, isolation_level=None, timeout=60))
    )
    other.execute("BEGIN EXCLUSIVE")
    scene.goes_on()


def frozen(scene: Scene) -> None:
    """A disk that does not answer: whoever writes to it waits."""
    done = subprocess.run(
        ["fsfreeze", "-f", str(scene.records)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise NotHere(f"no disk can be frozen here: {done.stderr.strip()}")
    try:
        time.sleep(scene.held / 4)
        scene.goes_on()
    finally:
        subprocess.run(["fsfreeze", "-u", str(scene.records)], check=True)


def image(scene: Scene) -> None:
    """A disk in a file, for what only a real one can do."""
    file = scene.folder / "disk"
    with open(file, "wb") as made:
        made.truncate(16 * 2**20)
    words = (["mkfs.ext4", "-q", str(file)], ["mount", "-o", "loop", str(file), str(scene.records)])
    for command in words:
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise NotHere(f"no disk in a file: {error}") from None
        if done.returncode:
            raise NotHere(f"no disk in a file: {done.stderr.strip()}")
    shutil.rmtree(scene.records / "lost+found", ignore_errors=True)


def small(scene: Scene) -> None:
    mount_tmpfs(scene.records, "size=1m")


def few_names(scene: Scene) -> None:
    mount_tmpfs(scene.records, "size=8m,nr_inodes=20")


FAULTS = (
    Fault(name="disk full: no byte more for memfit", inject=no_byte_more, quick=True),
    Fault(name="disk full", kind="torch", before=small, inject=fill, leaves=BESIDE),
    Fault(
        name="disk full, with a limit",
        before=small,
        inject=fill,
        options=("--limit", "4GiB"),
        leaves=BESIDE,
    ),
    Fault(
        name="disk full, track() alone",
        before=small,
        inject=fill,
        run=False,
        record=OWN,
        leaves=BESIDE,
    ),
    Fault(name="no file more on the disk", before=few_names, inject=fill_with_names, leaves=BESIDE),
    Fault(name="folder and files read-only", before=small, inject=immutable, leaves=BESIDE),
    Fault(name="disk that does not answer", before=image, inject=frozen, leaves=BESIDE),
    Fault(name="folder removed", kind="torch", inject=removed),
    Fault(name="folder removed, track() alone", inject=removed, run=False, record=OWN),
    Fault(name="folder moved", inject=moved),
    Fault(name="files replaced by others", inject=replaced),
    Fault(name="recording cut to nothing", inject=cut, leaves=BESIDE),
    Fault(name="its log cut to nothing", inject=cut_log, leaves=BESIDE),
    Fault(
        name="its shared file cut to nothing",
        inject=cut_shared,
        record="-",
        code_of="any",
        leaves=BESIDE,
    ),
    Fault(name="recording overwritten", inject=overwritten, leaves=BESIDE),
    Fault(name="recording locked for 8 s", inject=locked, leaves=BESIDE),
    Fault(name="recording locked to the end", inject=locked_to_the_end, leaves=BESIDE),
    Fault(
        name="recording locked for 8 s, track() alone",
        inject=lambda scene: locked(scene, "own.db"),
        run=False,
        record=OWN,
    ),
)
