"""Who holds a run's memory is looked at now and then, and what grew is told in a sentence."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memfit.measure.record import holder_looks
from memfit.measure.record.holder_looks import HolderLooks, _Look
from tests.measure.live.outside_walk.children import running

MIB = 2**20
GROWS = """
import sys

class Agent:
    def __init__(self):
        self.trajectory = []

agent = Agent()
steady = [bytes(1000) + str(i).encode() for i in range(20_000)]
print("ready", flush=True)
for line in sys.stdin:
    agent.trajectory += [bytes(1000) + str(i).encode() for i in range(20_000)]
    print("grown", flush=True)
"""


def until(done: Callable[[], bool], looks: HolderLooks, *call: object) -> None:
    end = time.monotonic() + 100
    while not done():
        assert time.monotonic() < end
        looks.look(*call)  # type: ignore[arg-type]
        time.sleep(0.05)


def test_what_grew_most_between_two_looks_is_told(tmp_path: Path) -> None:
    looks = HolderLooks()
    with running(GROWS, tmp_path) as process:
        assert process.stdin is not None and process.stdout is not None
        until(lambda: looks.last is not None, looks, 10.0, {process.pid: 100 * MIB, 1: MIB}, 100)
        assert looks.grown() == ""
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "grown\n"
        first = looks.first
        held = {process.pid: 120 * MIB}
        until(lambda: looks.last is not first, looks, 30.0, held, 20_100)
    assert first is not None and first.pid == process.pid
    assert first.held["steady"] == pytest.approx(20_000 * 1040, rel=0.02)
    text = looks.grown()
    start = "agent.trajectory grew most: by "
    assert text.startswith((f"{start}19.", f"{start}20.")), text
    assert "from 10 s to 30 s" in text and "a step or " in text
    assert "1.02 KiB for each of 20,000 new elements, to" in text


def test_since_when_it_grew_is_told_from_the_look_before() -> None:
    looks = HolderLooks(
        looks=[
            _Look(
                seconds=s,
                pid=1,
                step=step,
                held={"kept": kept * MIB, "data": 90 * MIB},
                elements={},
            )
            for s, step, kept in (
                (5, 0, 2),
                (40, 100, 2),
                (80, 200, 3),
                (90, 300, 53),
                (99, 400, 103),
            )
        ]
    )
    assert looks.grown() == (
        "kept grew most: by 100 MiB from 80 s to 99 s, 5.26 MiB/s or 512 KiB a step, to 103 MiB"
    )


def test_a_run_that_ends_is_looked_at_once_more_and_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holder_looks, "_LAST_LOOK", 100.0)
    looks = HolderLooks()
    with running(GROWS, tmp_path) as process:
        looks.look_last(3.0, {process.pid: MIB, 1: 0}, None)
    assert looks.grown() == ""
    assert looks.held_most().startswith("steady held most at 3 s: 20.0 MiB")


@pytest.mark.parametrize(
    ("seconds", "amount"),
    [(1.0, 500 * MIB), (100.0, MIB)],  # too early, too little
)
def test_nothing_is_looked_at_without_need(seconds: float, amount: int) -> None:
    looks = HolderLooks()
    looks.look(seconds, {1: amount}, None)
    looks.look(seconds, {}, None)
    assert looks._running is None


def test_nothing_is_looked_at_where_memory_is_scarce(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holder_looks, "available", lambda: 100 * MIB)
    looks = HolderLooks()
    looks.look(100.0, {1: 500 * MIB}, None)
    assert looks._running is None


def test_a_look_that_takes_too_long_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "endless.py").write_text("import time\ntime.sleep(1000)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(holder_looks, "_PROGRAM", "endless")
    looks = HolderLooks()
    looks.look(10.0, {1: 500 * MIB}, None)
    running = looks._running
    assert running is not None
    looks.look(150.0, {1: 500 * MIB}, None)
    assert running.poll() is not None and looks._running is None
    assert looks.grown() == ""


def test_where_no_process_may_be_started_nothing_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise BlockingIOError

    monkeypatch.setattr(subprocess, "Popen", refused)
    looks = HolderLooks()
    looks.look(10.0, {1: 500 * MIB}, None)
    assert looks._running is None and not looks._due(20.0, 5000 * MIB)
    assert looks._due(80.0, 5000 * MIB)


def test_the_process_that_grows_is_looked_at_beside_a_larger_one() -> None:
    looks = HolderLooks()
    assert looks._whom({10: 900 * MIB, 11: 100 * MIB, 12: 100 * MIB}) == 10
    grown = {10: 900 * MIB, 11: 150 * MIB, 12: 160 * MIB}
    assert looks._whom(grown) == 12
    looks.looks = [_Look(seconds=9, pid=11, step=None, held={"kept": MIB}, elements={})]
    assert looks._whom(grown) == 11  # followed as long as none grows much more


def test_what_grew_in_a_worker_is_told_with_its_process() -> None:
    held = [{"kept": amount * MIB} for amount in (1, 101)]
    two = [
        _Look(seconds=s, pid=12, step=None, held=h, elements={})
        for s, h in zip((10, 20), held, strict=True)
    ]
    assert HolderLooks(looks=two, _main=10).grown().startswith("kept in process 12 grew most: by")
    assert HolderLooks(looks=two, _main=12).grown().startswith("kept grew most: by")
