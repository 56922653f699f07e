"""What a recording proves, and what it does not."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from memfit.checks import check_recording, wanted
from memfit.cli import main
from memfit.model import Finding, Forecast, Growth, Kind, Ledger, Reading, Trace, const
from memfit.units import GIB, MIB
from tests.samples import row
from tests.samples_live import FORECAST, trace

STABLE = Forecast(growth=Growth.STABLE, bytes_per_second=0.0)
ALL = wanted(("ALL",), ())


def found(run: Trace, forecast: Forecast = STABLE) -> dict[str, Finding]:
    return {f.code: f for f in check_recording(run, forecast, "night.db", ALL)}


def calm(**changes: object) -> Trace:
    """A run that held 400 MiB of its 690 from its begin to its end."""
    readings = tuple(Reading(seconds=float(i), bytes=400 * MIB) for i in range(10))
    plain = replace(trace(), readings=readings, events=(), exit_code=0, peak_ledger=None)
    return replace(plain, **changes)  # type: ignore[arg-type]


def test_a_calm_run_has_nothing_to_tell() -> None:
    assert not found(calm())


def test_growth_that_fills_nothing_is_told_with_its_pace() -> None:
    growing = replace(FORECAST, since=12.0, grown_bytes=600 * MIB, members=("worker 7",))
    finding = found(calm(), growing)["MF119"]
    assert "grew by 600 MiB in worker 7, 17.6 GiB an hour" in finding.message
    assert (finding.where, finding.path) == ("night.db: from 12 s on", "night.db")


@pytest.mark.parametrize(("ends", "told"), [(690 * MIB, False), (691 * MIB, True)])
def test_what_fills_is_told_where_it_ends_above_the_limit(ends: int, told: bool) -> None:
    filling = Forecast(growth=Growth.FILLING, bytes_per_second=1.0, ends_at_bytes=ends)
    assert ("MF002" in found(calm(), filling)) == told
    assert "MF119" not in found(calm(), filling)


def test_a_run_over_its_limit_is_told_with_its_end() -> None:
    finding = found(trace())["MF411"]
    assert "held 700 MiB of 690 MiB (--limit): ended above its limit" in finding.message
    assert finding.where == "night.db: at 120 s"
    over = calm(readings=(Reading(seconds=1.0, bytes=691 * MIB),))
    assert "MF411" in found(over) and "MF411" not in found(replace(over, limit=None))


@pytest.mark.parametrize(
    ("processes", "cores", "told"), [(9, 4, True), (8, 4, False), (9, 0, False)]
)
def test_processes_are_compared_with_the_cores_of_their_machine(
    processes: int, cores: int, told: bool
) -> None:
    readings = tuple(
        Reading(seconds=float(i), bytes=400 * MIB, processes=processes) for i in range(9)
    )
    assert ("MF403" in found(calm(readings=readings, cores=cores or None))) == told


def test_what_malloc_kept_was_measured() -> None:
    kept = row("malloc.free", Kind.FRAGMENTATION, const(40 * MIB), ("now",))
    run = calm(peak_ledger=Ledger(components=(kept,)))
    assert "40.0 MiB of the peak, 10%" in found(run)["MF012"].message
    few = calm(peak_ledger=Ledger(components=(replace(kept, size=const(19 * MIB)),)))
    assert "MF012" not in found(few)


def test_hardware_that_was_idle_is_told_where_it_is_asked_for() -> None:
    limit = replace(trace().limit, bytes=4 * GIB)  # type: ignore[type-var]
    assert "10%" in found(calm(limit=limit))["MF407"].message
    assert "MF407" not in wanted((), ())


def test_a_recording_is_a_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Recorded and ended by memfit itself, for a limit that the command goes over at once."""
    path, program = tmp_path / "night.db", "x = bytearray(300 << 20)\nimport time\ntime.sleep(60)"
    subprocess.run(
        [
            *(sys.executable, "-m", "memfit", "run", "--limit", "100MiB", "-o", str(path)),
            *("--", sys.executable, "-c", program),
        ],
        check=False,
        capture_output=True,
        timeout=120,
    )
    assert main(["check", str(path), "--format", "json"]) == 5
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert (finding["code"], finding["severity"]) == ("MF411", "error")
    assert main(["check", str(path), "--ignore", "MF411"]) == 0
    capsys.readouterr()
    assert main(["check", str(path), "--format", "sarif"]) == 5
    (result,) = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    assert "region" not in result["locations"][0]["physicalLocation"]
