"""One file for a recorded run: SQLite with a write-ahead log, readable while it grows.

Every reading is committed when it is taken, so that nothing of it is lost when the run, the
recorder or both are killed. Old readings are thinned, of four neighbours those between the lowest
and the highest first, so that the file stays small however long the run is and keeps its peaks.
"""

from __future__ import annotations

import ctypes
import json
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from memfit.errors import UsageError
from memfit.model import Component, Event, EventKind, Ledger, Reading

SCHEMA = 1
APPLICATION = 0x6D656D66  # "memf"
MOST_READINGS = 200_000  # about 50 bytes each
MOST_EVENTS = 20_000
MOST_LEDGERS = 64
LONGEST_TEXT = 2**16  # characters of an event
LATEST = 1e10  # seconds: 300 years
WHOLE = 2**63  # a whole number of SQLite is below
MOST_HOLDERS, _LONGEST_NAME = 2000, 500  # told by the run itself; characters
_NOTHING = (0, 0)  # the identity of a file that is not there
_EVENTS_TURN = 1000  # events of one writer, after which old ones are dropped
PATIENCE = 5.0  # seconds to wait for another writer

_TABLES = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS readings (
    id INTEGER PRIMARY KEY, seconds REAL NOT NULL, bytes INTEGER NOT NULL,
    processes INTEGER NOT NULL, threads INTEGER NOT NULL, step INTEGER,
    filling INTEGER NOT NULL, room INTEGER NOT NULL, files INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS members (
    id INTEGER PRIMARY KEY, seconds REAL NOT NULL, pid INTEGER NOT NULL, name TEXT NOT NULL,
    bytes INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY, seconds REAL NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL,
    bytes INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS ledgers (
    id INTEGER PRIMARY KEY, seconds REAL NOT NULL, bytes INTEGER NOT NULL, rows TEXT NOT NULL);
"""


class Recording:
    """A recording that is being written."""

    def __init__(self, path: Path, *, most_readings: int = MOST_READINGS) -> None:
        self.path = path
        self.most_readings = most_readings
        others = open_files(path)  # of another tracker of this process
        with ExitStack() as undo:
            if _made(path):  # empty, it would be in the way of the next try
                undo.callback(remove, path)
            try:
                # Absolute: SQLite takes `file:x` for an address and `:memory:` for no file.
                name = path.absolute()
                self._file = sqlite3.connect(name, isolation_level=None, timeout=PATIENCE)
                undo.callback(self._file.close)
                self._prepare()
            except sqlite3.Error as error:
                why = f"cannot record into {path}: {error}. Choose another file"
                raise UsageError(why) from None
            undo.pop_all()
        found = open_files(path)
        self._files = {number: found[number] for number in found.keys() - others.keys()}

    def _prepare(self) -> None:
        self._file.execute(f"PRAGMA application_id = {APPLICATION}")
        self._file.execute(f"PRAGMA user_version = {SCHEMA}")
        self._file.executescript(_TABLES)
        # Only now, so that the file itself says what it is from the first moment on.
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("PRAGMA synchronous = NORMAL")
        self._readings = int(self._file.execute("SELECT count(*) FROM readings").fetchone()[0])
        self._drop_old_events()

    def about(self, **facts: Any) -> None:
        """Note facts of the run: its command, PID, start and limit."""
        self._file.executemany(
            "INSERT OR REPLACE INTO about VALUES (?, ?)",
            [(name, json.dumps(value)) for name, value in facts.items()],
        )

    def reading(self, reading: Reading) -> None:
        """Keep one reading."""
        self._insert("readings", vars(reading))
        self._readings += 1
        if self._readings > self.most_readings:
            self._thin()

    def members(self, seconds: float, held: Iterable[tuple[int, str, int]]) -> None:
        """Keep what each process holds: its PID, its name, and bytes."""
        self._file.execute("BEGIN")
        for pid, name, amount in held:
            text = _encodable(name)[:_LONGEST_NAME]
            self._insert("members", {"seconds": seconds, "pid": pid, "name": text, "bytes": amount})
        self._file.execute("COMMIT")

    def event(self, event: Event) -> None:
        """Keep something that happened; what a reader would refuse is cut."""
        text = _encodable(event.text[:LONGEST_TEXT])[:LONGEST_TEXT]
        self._insert("events", {**vars(event), "kind": event.kind.value, "text": text})
        self._events += 1
        if self._events >= _EVENTS_TURN:
            self._drop_old_events()

    def _insert(self, table: str, row: Mapping[str, Any]) -> None:
        names, values = ", ".join(row), ", ".join(f":{name}" for name in row)
        self._file.execute(f"INSERT INTO {table} ({names}) VALUES ({values})", row)

    def ledger(self, seconds: float, ledger: Ledger) -> None:
        """Keep the rows at a time: the highest, the latest, and of many every second one."""
        rows = [_row(ledger, component) for component in ledger.components]
        total = sum(row["bytes"] for row in rows)
        self._file.execute("BEGIN")
        self._insert("ledgers", {"seconds": seconds, "bytes": total, "rows": json.dumps(rows)})
        kept = int(self._file.execute("SELECT count(*) FROM ledgers").fetchone()[0])
        if kept > MOST_LEDGERS:
            self._file.execute(
                "DELETE FROM ledgers WHERE id IN (SELECT id FROM (SELECT id, row_number() OVER "
                "(ORDER BY id DESC) AS turn FROM ledgers) WHERE turn % 2 = 0) AND id NOT IN "
                "(SELECT id FROM ledgers ORDER BY bytes DESC, id LIMIT 1)"
            )
        self._file.execute("COMMIT")

    def started(self) -> float:
        """When the run began, in seconds of the clock; now where nobody said it yet."""
        return float(self._fact("started") or time.time())

    def step(self) -> int | None:
        """The environment step that the run itself last told."""
        found = self._fact("step")
        return None if found is None else int(found)

    def told(self, holders: Mapping[str, int]) -> None:
        """Note what the run itself says that it holds, by path; the largest where it is many."""
        held = {name: size for name, size in holders.items() if -WHOLE <= size < WHOLE}
        held = {**(self._fact("holders") or {}), **{k[:_LONGEST_NAME]: v for k, v in held.items()}}
        if len(held) > MOST_HOLDERS:
            held = dict(sorted(held.items(), key=lambda item: -item[1])[:MOST_HOLDERS])
        self.about(holders=held)

    def _fact(self, name: str) -> Any:
        row = self._file.execute("SELECT value FROM about WHERE name = ?", (name,)).fetchone()
        return None if row is None else json.loads(row[0])

    @property
    def intact(self) -> bool:
        """Whether its files are open still, under the numbers that SQLite knows."""
        return all(_identity(number) == found for number, found in self._files.items())

    def abandon(self) -> None:
        """Never touch it again: the numbers of its files may stand for others.

        Even to close it would write to them, so that it stays to the end of the process.
        """
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._file))

    def leave(self) -> None:
        """Write no more, while another goes on."""
        self._file.close()

    def close(self) -> None:
        """End it: all is in the one file then, and readers make none beside it."""
        with suppress(sqlite3.Error):  # somebody reads it just now
            self._file.execute("PRAGMA journal_mode = DELETE")
        self._file.close()

    def _thin(self) -> None:
        """Of the older three quarters, keep the lowest and the highest of every four neighbours."""
        self._file.execute("BEGIN")
        self._file.execute(
            "DELETE FROM readings WHERE id IN (SELECT id FROM (SELECT id, row_number() OVER "
            "(PARTITION BY (n - 1) / 4 ORDER BY bytes, id) AS rank, count(*) OVER "
            "(PARTITION BY (n - 1) / 4) AS whole FROM (SELECT id, bytes, row_number() OVER "
            "(ORDER BY id) AS n FROM readings ORDER BY id LIMIT ?)) "
            "WHERE rank NOT IN (1, whole))",
            (self.most_readings * 3 // 4,),
        )
        self._readings = int(self._file.execute("SELECT count(*) FROM readings").fetchone()[0])
        self._file.execute("COMMIT")

    def _drop_old_events(self) -> None:
        """Of phases the latest stay, however many a run tells and however many processes it has."""
        self._events = 0
        self._file.execute(
            "DELETE FROM events WHERE id NOT IN (SELECT id FROM events ORDER BY id DESC LIMIT ?) "
            "AND kind = ?",
            (MOST_EVENTS, EventKind.PHASE.value),
        )


def files_of(path: Path) -> list[Path]:
    """The file of a recording, and those that SQLite makes beside it while it is written."""
    return [path.with_name(f"{path.name}{end}") for end in ("", "-wal", "-shm", "-journal")]


def remove(path: Path) -> None:
    """Leave nothing of a recording that was never begun."""
    for file in files_of(path):
        with suppress(OSError):
            file.unlink()


def is_recording(path: Path) -> bool:
    """Whether a file begins as a recording does, without opening it as a database."""
    try:
        with path.open("rb") as file:
            head = file.read(72)
    except OSError:
        return False
    return head.startswith(b"SQLite format 3\0") and head[68:72] == APPLICATION.to_bytes(4, "big")


def _is_over(path: Path) -> bool:
    """Whether a file is a recording that nobody writes any more."""
    return is_recording(path) and not any(file.exists() for file in files_of(path)[1:])


def _made(path: Path) -> bool:
    """Make an empty file, if nothing has this name; whether that was done."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    except OSError:  # it is there, or SQLite will say what is wrong
        return False
    return True


def open_files(path: Path) -> dict[int, tuple[int, int]]:
    """Which files this process has open of a recording: their numbers, and what they stand for."""
    known = {_identity(file) for file in files_of(path)} - {_NOTHING}
    with suppress(OSError):
        numbers = map(int, os.listdir("/proc/self/fd"))
        return {number: file for number in numbers if (file := _identity(number)) in known}
    return {}


def _identity(file: Path | int) -> tuple[int, int]:
    """Which file a path or a number stands for."""
    try:
        found = os.stat(file)  # noqa: PTH116  # a number too
    except OSError:
        return _NOTHING
    return found.st_dev, found.st_ino


def _encodable(text: str) -> str:
    """Text without halves of characters, which no file can take."""
    return text.encode(errors="backslashreplace").decode()


def _row(ledger: Ledger, component: Component) -> dict[str, Any]:
    reserved = component.reserved
    return {
        "name": component.name,
        "kind": component.kind.value,
        "place": component.place.value,
        "bytes": ledger.bytes_of(component),
        "reserved": None if reserved is None else reserved.evaluate(ledger.knobs),
        "where": component.evidence.where,
    }


@contextmanager
def scratch(place: Path | str | None, *, force: bool = False) -> Iterator[Path]:
    """Where to record: a new file at `place`, or one that is gone afterwards.

    With `force`, a recording that is there already is removed. Nothing else is: whoever mistypes a
    name loses no file of another kind, and no recording that is still written.
    """
    if place is None:
        try:
            temporary = tempfile.TemporaryDirectory(prefix="memfit-", ignore_cleanup_errors=True)
        except OSError as error:
            raise UsageError(f"no temporary folder can be made: {error}. Set TMPDIR") from None
        with temporary:
            yield Path(temporary.name) / "run.db"
        return
    path = Path(place)
    try:
        there = next((file for file in files_of(path) if file.exists()), None)
        folder = path.absolute().parent.is_dir()
    except (OSError, ValueError) as error:  # too long, not permitted, with a null byte
        raise UsageError(f"cannot record into {path}: {error}. Choose another file") from None
    if there and not (force and _is_over(path)):
        if _is_over(path):
            raise UsageError(f"{there} is there already: give -f to replace it, or a new name (-o)")
        what = "is there already, and is no recording that has ended"
        raise UsageError(f"{there} {what}: -f would not replace it; give a new name (-o)")
    if there:
        remove(path)
    if not folder:
        raise UsageError(f"cannot record into {path}: its folder does not exist. Create it")
    yield path
