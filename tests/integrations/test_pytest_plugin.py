"""The plugin does nothing unless asked, and then tells limits and leaks apart from what is well."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

TESTS = """
import ctypes
import pytest

CACHE, ONCE = [], {}
LIBC = ctypes.CDLL(None)
LIBC.malloc.restype = ctypes.c_void_p

@pytest.mark.memfit_no_leak(calls=60)
def test_leaks():
    CACHE.append(bytes(2000))

@pytest.mark.memfit_no_leak(calls=60)
def test_leaks_in_c():
    ctypes.memset(ctypes.cast(LIBC.malloc(3000), ctypes.c_void_p), 1, 3000)

@pytest.mark.memfit_no_leak(calls=60)
def test_keeps_one():
    ONCE["last"] = bytes(2000)

@pytest.mark.memfit_limit("40 MiB")
def test_too_large():
    assert len(bytearray(100 << 20)) > 0

@pytest.mark.memfit_limit("40 MiB")
def test_small():
    assert len(bytearray(1 << 20)) > 0

def test_plain(tmp_path):
    assert tmp_path.is_dir()

@pytest.mark.memfit_no_leak(calls=1)
def test_wrong_marker():
    pass
"""


def _pytest(folder: Path, *options: str) -> str:
    """What pytest prints of these tests."""
    (folder / "test_memory.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    plugin = "memfit.integrations.pytest_plugin"
    there = any(point.value == plugin for point in entry_points(group="pytest11"))
    loaded = () if there else ("-p", plugin)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider", *loaded, *options],
        cwd=folder,
        # With CI, pytest repeats whole messages in its summary.
        env={name: value for name, value in os.environ.items() if name != "CI"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return done.stdout + done.stderr


def test_it_is_inert_unless_asked(tmp_path: Path) -> None:
    assert "7 passed" in _pytest(tmp_path)


@pytest.mark.parametrize("way", ["--memfit", "ini"])
def test_leaks_and_limits_are_told(tmp_path: Path, way: str) -> None:
    options = ("--memfit",) if way == "--memfit" else ("-o", "memfit=true")
    said = _pytest(tmp_path, *options)
    assert "4 failed, 3 passed" in said
    assert "test_leaks leaks 2." in said and "KiB a call" in said
    assert "held by test_memory.CACHE" in said
    assert "test_leaks_in_c leaks" in said and said.count("  held by") == 1
    assert "no variable of the tests or of what they test holds it" in said
    assert "test_too_large added" in said and "its limit is 40.0 MiB" in said
    assert "memfit_no_leak takes calls=N, and 20 or more" in said


def test_loading_it_loads_nothing_else() -> None:
    code = (
        "import sys, memfit.integrations.pytest_plugin;"
        "sys.exit(any(name in sys.modules for name in ('numpy', 'torch', 'memfit.analyses')))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
