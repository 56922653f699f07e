"""Documents of the reference systems: what is looked up for them, and where they are written."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from memfit.api import system_document as verb
from memfit.api.demo import demonstrations
from memfit.cli import main
from memfit.measure.kernel.machine import machine
from memfit.model import DemoVariant, SystemDemo, SystemRun
from tests import samples_compared


def test_logic_is_checked_in_the_text_and_told_without_a_path() -> None:
    found = verb._text_findings("fighter")
    assert all(finding.where.startswith("systems/fighter/") for finding in found)
    checks = {check.code: check for check in verb._logic(found)}
    assert [f.where.split(":")[0] for f in checks["MF303"].found] == [
        "systems/fighter/described.py"
    ]
    assert checks["MF309"].found == () and len(checks) > 10


def run(training: str, value: int) -> SystemRun:
    return SystemRun(
        training=training,
        knob="n",
        value=value,
        predicted=1,
        upper=1,
        measured=value,
        seconds=1.0,
    )


def variant(name: str, *values: int) -> DemoVariant:
    return DemoVariant(name=name, spec="", knob="n", options="", values=values)


def test_before_and_after_are_of_one_size(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[tuple[str, int]] = []

    def measure(system: str, variant: DemoVariant, value: int, progress: object) -> SystemRun:
        measured.append((variant.name, value))
        return run(variant.name, value)

    monkeypatch.setattr(verb, "system_run", measure)
    runs = (run("a", 1), run("a", 2), run("b", 2), run("b", 3))
    shown = SystemDemo(system="x", runs=runs, lines={}, seconds=1.0)
    found = verb._beside("x", (variant("a", 1, 2), variant("b", 2, 3)), shown, None)
    assert [(r.training, r.value) for r in found] == [("a", 2), ("b", 2)] and measured == []
    # Where no size is common, the one made to fit is measured at the first's largest.
    found = verb._beside("x", (variant("a", 1, 2), variant("b", 30)), shown, None)
    assert [(r.training, r.value) for r in found] == [("a", 2), ("b", 2)]
    found = verb._beside("x", (variant("a", 1, 2), variant("c", 30)), shown, None)
    assert measured == [("c", 2)]


def test_what_a_system_saves_is_two_measured_runs_subtracted() -> None:
    document = samples_compared.system_document()
    before, after = document.beside
    ((name, saved, share),) = document.saved
    assert name == "made to fit" and saved == before.measured - after.measured
    assert share == saved / before.measured


def test_a_machine_is_told_by_its_kind_and_by_no_name() -> None:
    found = machine(("pytest", "no-such-package"))
    assert found.cores == len(os.sched_getaffinity(0))
    assert found.ram_bytes == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert len(found.software) == 2 and found.software[1].startswith("pytest ")
    assert socket.gethostname() not in (found.processor, *found.software)


def test_a_folder_gets_the_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = samples_compared.system_document()
    monkeypatch.setattr(verb, "system_document", lambda system, progress: document)
    assert main(["demo", "drone", "-q", "-o", str(tmp_path / "made")]) == 0
    page = (tmp_path / "made" / "drone.md").read_text(encoding="utf-8")
    assert page.startswith("# Memory of the drone system, measured\n")
    assert main(["demo", "drone", "-q", "--format", "md", "-o", str(tmp_path / "a.md")]) == 0
    assert (tmp_path / "a.md").read_text(encoding="utf-8") == page


def test_a_folder_that_cannot_be_made_is_told_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert main(["demo", "drone", "-o", str(tmp_path / "file" / "made")]) == 2
    assert "Choose another folder" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.truth
@pytest.mark.timeout(900)
def test_a_document_is_planned_and_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    smaller = tuple(
        DemoVariant(
            name=known.name,
            spec=known.spec,
            knob=known.knob,
            options=known.options.replace("--iterations 2", "--iterations 1"),
            values=(1_024, 2_048),
        )
        for known in demonstrations()["trader"]
    )
    for module in ("memfit.api.demo", "memfit.api.system_document"):
        monkeypatch.setattr(f"{module}.demonstrations", lambda: {"trader": smaller})
    assert main(["demo", "trader", "-q", "-o", str(tmp_path)]) == 0
    page = (tmp_path / "trader.md").read_text(encoding="utf-8")
    for heading in (
        "Configuration",
        "Memory by component, as described",
        "Memory by component, made to fit",
        "Measured benchmark",
        "Before and after, both measured with steps 2,048",
        "Capacity by hardware",
        "Issues by severity",
        "Logic checks, as described",
        "Recommendations by priority",
        "Monitoring targets",
    ):
        assert f"## {heading}\n" in page
    assert "| `width` | 768 | 128 |" in page and "MF309" in page
    for own in (socket.gethostname(), str(Path.home()), str(Path(__file__).parents[2])):
        assert f" {own}" not in page


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.truth
@pytest.mark.timeout(900)
def test_the_demonstration_records_its_training_before_and_after(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert main(["demo", "-q", "--format", "json"]) == 0
    recorded = json.loads(capfd.readouterr().out)["recorded"]
    assert 2**26 < recorded["after_bytes"] < recorded["before_bytes"]
