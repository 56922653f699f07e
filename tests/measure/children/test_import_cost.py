"""What imports cost, of modules of known size."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from memfit.measure.children.import_cost import ImportCost, import_cost

MIB = 2**20


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "light.py").write_text("print('modules may talk')")
    (tmp_path / "heavy.py").write_text("held = bytearray(b'x') * (64 << 20)")
    (tmp_path / "with_helper.py").write_text(
        "import subprocess, sys\n"
        "code = 'held = bytearray(48 << 20); print(flush=True); import sys; sys.stdin.read()'\n"
        "pipes = {'stdin': subprocess.PIPE, 'stdout': subprocess.PIPE}\n"
        "helper = subprocess.Popen([sys.executable, '-c', code], **pipes)\n"
        "helper.stdout.readline()\n"
    )


def test_a_module_costs_what_it_holds_and_what_it_starts() -> None:
    light = import_cost(("light",)).bytes
    assert 5 * MIB < light < 40 * MIB
    assert abs(import_cost(("light", "heavy")).bytes - light - 64 * MIB) < 2 * MIB
    helped = import_cost(("light", "with_helper")).bytes
    assert light + 48 * MIB < helped < 2 * light + 48 * MIB + 8 * MIB


def test_the_cost_does_not_depend_on_what_else_runs() -> None:
    """Others that share the interpreter's pages take nothing from it."""
    first = import_cost(("light",)).bytes
    command = [sys.executable, "-c", "input()"]
    beside = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(4)]
    try:
        assert abs(import_cost(("light",)).bytes - first) < MIB
    finally:
        for process in beside:
            process.communicate(b"\n")


def test_a_cost_is_kept_by_version(tmp_path: Path) -> None:
    kept = tmp_path / "cache" / "memfit" / "import-cost.json"
    assert import_cost(("numpy",)).bytes > 10 * MIB
    (key,) = json.loads(kept.read_text())
    assert f"numpy {metadata.version('numpy')}" in key
    kept.write_text(json.dumps({key: [12345, ["numpy", "sys"], 678, 90]}))
    cost = ImportCost(bytes=12345, files=90, modules=frozenset({"numpy", "sys"}), own=678)
    assert import_cost(("numpy",)) == cost
    kept.write_text(json.dumps({key: 12345}))
    assert import_cost(("numpy",)).bytes > 10 * MIB, "what is no cost is measured again"


def test_what_memfit_itself_adds_is_told_apart() -> None:
    """Modules that a library loads too are no cost of memfit's."""
    alone, beside = import_cost(("light",)), import_cost(("light", "asyncio", "numpy"))
    assert 0 < beside.own < alone.own < 40 * MIB
    assert not any(name.startswith("memfit") for name in alone.modules)


def test_all_modules_are_told_that_an_import_loads() -> None:
    found = import_cost(("light", "xml.dom")).modules
    assert {"light", "xml", "xml.dom", "sys"} <= found
    assert "heavy" not in found


def test_what_has_no_version_is_measured_again_and_a_failure_is_not_kept(tmp_path: Path) -> None:
    assert import_cost(("later",)).bytes == 0
    (tmp_path / "later.py").write_text("")
    before = import_cost(("later",)).bytes
    (tmp_path / "later.py").write_text("held = bytearray(b'x') * (32 << 20)")
    assert abs(import_cost(("later",)).bytes - before - 32 * MIB) < 2 * MIB
    assert not (tmp_path / "cache").exists()


def test_a_module_that_never_ends_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text("import time; time.sleep(60)")
    assert import_cost(("endless",), timeout=0.5).bytes == 0
