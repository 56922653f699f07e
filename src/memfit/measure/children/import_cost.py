"""What a Python process costs that only imports a run's libraries: measured once a version."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

_PROGRAM = """
import sys
for name in sys.argv[1:]:
    __import__(name)
for line in open("/proc/self/smaps_rollup"):
    if line.startswith("Rss:"):
        print(int(line.split()[1]) * 1024)
"""
_DISTRIBUTIONS = {"stable_baselines3": "stable-baselines3", "sb3_contrib": "sb3-contrib"}


def import_base(modules: tuple[str, ...], *, timeout: float = 60.0) -> int:
    """The resident bytes of a child that imports these modules; cached by their versions."""
    key = _key(modules)
    known = _load()
    if key not in known:
        known[key] = _measure(modules, timeout)
        _save(known)
    return known[key]


def _measure(modules: tuple[str, ...], timeout: float) -> int:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *modules],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    lines = done.stdout.split()
    return int(lines[-1]) if done.returncode == 0 and lines else 0


def _key(modules: tuple[str, ...]) -> str:
    parts = [f"python {sys.version.split()[0]} {sys.executable}"]
    for name in modules:
        with contextlib.suppress(metadata.PackageNotFoundError):
            parts.append(f"{name} {metadata.version(_DISTRIBUTIONS.get(name, name))}")
    return "; ".join(parts)


def _file() -> Path:
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "memfit" / "import-base.json"


def _load() -> dict[str, int]:
    try:
        data = json.loads(_file().read_text())
    except (OSError, ValueError):
        return {}
    return {str(k): int(v) for k, v in data.items()} if isinstance(data, dict) else {}


def _save(known: dict[str, int]) -> None:
    # A cache that cannot be written costs a second next time, nothing more.
    with contextlib.suppress(OSError):
        _file().parent.mkdir(parents=True, exist_ok=True)
        partial = _file().with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(known))
        partial.replace(_file())
