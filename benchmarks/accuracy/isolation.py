"""Private copies of the libraries a run maps, so that nothing outside shares its pages.

The proportional size of a process (PSS) splits a page among all processes that map it. Another
Python on the machine, such as a test run, would make a training run look up to some 40 MiB
smaller than it is alone. Where the kernel allows it, a run is therefore started in a mount
namespace in which every library is a copy that only that run maps. The paths stay the same.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

_LIST = """
import sys, multiprocessing.connection, zipfile, pickle
import sb3_contrib
from stable_baselines3 import PPO
PPO("MlpPolicy", "CartPole-v1", n_steps=16, batch_size=16).learn(16)
paths = {line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if " /" in line}
sys.stdout.write("\\n".join(sorted(path for path in paths if path.startswith("/"))))
"""


def _drop_from_cache(path: Path) -> None:
    """Let pages come in as they do for a library on disk, not all at once as just written."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def _mapped_files(program: str) -> list[str]:
    command = [sys.executable, "-c", program]
    listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return [path for path in listed.stdout.splitlines() if Path(path).is_file()]


@contextlib.contextmanager
def private_libraries(program: str = _LIST) -> Iterator[list[str]]:
    """Yield what to put before a command for it to run on copies, or nothing if it cannot.

    `program` prints the paths of the files that a run maps, one on each line.
    """
    with tempfile.TemporaryDirectory(prefix="libraries-") as folder:
        lines = []
        for number, path in enumerate(_mapped_files(program)):
            copy = Path(folder, str(number))
            shutil.copy2(path, copy)
            _drop_from_cache(copy)
            lines.append(f"mount --bind '{copy}' '{path}' || exit 97")
        script = Path(folder, "run.sh")
        script.write_text("\n".join([*lines, 'exec "$@"']) + "\n")
        prefix = ["unshare", "--mount", "sh", str(script)]
        try:
            test = [*prefix, sys.executable, "-c", program]
            subprocess.run(test, check=True, capture_output=True, timeout=120)
        except (OSError, subprocess.SubprocessError):
            prefix = []
        yield prefix
