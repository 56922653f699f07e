"""A space is surveyed as often as it must be, and asked as often as anybody likes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest

from memfit.errors import UsageError
from memfit.integrations.planned_space import Parameter, PlannedSpace, Surveyed
from memfit.model import (
    Component,
    Evidence,
    EvidenceKind,
    Kind,
    Ledger,
    Limit,
    Plan,
    Readings,
    RunSpec,
    const,
    knob,
)
from memfit.units import GIB, MIB

BASE = 200 * MIB
STEP = Parameter(name="n_steps", kind="int", low=16, high=1024, step=1)
WIDTH = Parameter(name="width", kind="int", low=1, high=64, step=1)
RATE = Parameter(name="lr", kind="float", low=0.1, high=1.0)
ALGO = Parameter(name="algo", kind="categorical", choices=("ppo", "sac"))
BUFFER = Parameter(name="buffer_size", kind="int", low=100, high=100_000, step=1)


def row(name: str, size: Any, phase: str = "update", kind: Kind = Kind.BUFFER) -> Component:
    evidence = Evidence(kind=EvidenceKind.DERIVED, where="a test")
    return Component(name=name, kind=kind, size=size, phases=(phase,), evidence=evidence)


def plan_of(knobs: Mapping[str, int], *rows: Component) -> Plan:
    base = [row("base", const(BASE), phase, Kind.BASE) for phase in ("start", "update")]
    ledger = Ledger(components=(*base, *rows), knobs=knobs)
    return Plan(
        target="test",
        spec=RunSpec(
            library="sb3", version="1", algorithm="PPO", policy="", knobs=knobs, on_policy=True
        ),
        ledger=ledger,
        peak_bytes=ledger.peak.bytes,
        upper_bytes=ledger.peak.bytes,
        limit=Limit(bytes=GIB, source="test"),
        method="survey",
        readings=Readings(stopped=0, warm=0, unit=1),
        planner_peak_bytes=BASE,
    )


class Run:
    """A run whose memory is known: rows by n_steps, and weights by width that no formula has."""

    def __init__(self, *, hidden: int = 0) -> None:
        self.hidden = hidden  # what a step takes that its formulas do not say
        self.asked: list[dict[str, Any]] = []

    def __call__(self, values: Mapping[str, Any]) -> Surveyed:
        self.asked.append(dict(values))
        used = {"lr": 0.5, "n_steps": 128, "width": 8, **values}
        steps = used["n_steps"]
        rows = (
            row("rollout", knob("n_steps") * 2**16),
            row("weights", const(used["width"] ** 2 * 2**10)),
            row("hidden", const(self.hidden * steps)),
        )
        parameters = {p.name: p for p in (RATE, STEP, WIDTH)}
        return Surveyed(plan=plan_of({"n_steps": steps}, *rows), values=used, parameters=parameters)


def test_formulas_answer_for_all_values_of_their_settings() -> None:
    run = Run()
    space = PlannedSpace(run)
    space.prepare(GIB)
    for steps in (16, 128, 900):
        asked = space.ask({"lr": 0.2, "n_steps": steps, "width": 8})
        assert asked.peak_bytes == BASE + steps * 2**16 + 2**16
        assert asked.upper_bytes > asked.peak_bytes > asked.lower_bytes
        assert asked.row.name == "rollout"
    assert [one.get("n_steps") for one in run.asked] == [None, 16], "one survey, and its check"


def test_what_no_formula_has_is_surveyed_once_for_each_value() -> None:
    run = Run()
    space = PlannedSpace(run)
    space.prepare(GIB)
    for width in (8, 64, 64, 8):
        asked = space.ask({"lr": 0.2, "n_steps": 16, "width": width})
        assert asked.peak_bytes == BASE + 2**20 + width**2 * 2**10
    assert [one.get("width") for one in run.asked] == [None, 8, 64]


def test_settings_that_change_no_memory_are_not_surveyed() -> None:
    run = Run()
    space = PlannedSpace(run, ignore=["width"], each={"seats": 3 * MIB})
    space.prepare(GIB)
    one = space.ask({"lr": 0.2, "n_steps": 16, "width": 8})
    two = space.ask({"lr": 0.9, "n_steps": 16, "width": 64, "seats": 5})
    assert two.peak_bytes == one.peak_bytes + 15 * MIB and len(run.asked) == 2


def test_formulas_that_do_not_hold_are_not_used() -> None:
    """A step takes more than its row says: what is planned at one value is of that value alone."""
    said: list[str] = []
    run = Run(hidden=2**19)
    space = PlannedSpace(run, say=said.append)
    space.prepare(GIB)
    asked = space.ask({"lr": 0.2, "n_steps": 900, "width": 8})
    assert asked.peak_bytes == BASE + 900 * (2**16 + 2**19) + 2**16
    assert "n_steps do more than formulas say" in said[-1]


def test_choices_may_ask_for_other_settings() -> None:
    """As a search over algorithms does."""
    surveys: list[dict[str, Any]] = []

    def survey(values: Mapping[str, Any]) -> Surveyed:
        surveys.append(dict(values))
        used = {"algo": "ppo", **values}
        own = STEP if used["algo"] == "ppo" else BUFFER
        used = {"algo": used["algo"], own.name: values.get(own.name, own.low)}
        plan = plan_of({own.name: used[own.name]}, row("its buffer", knob(own.name) * 2**10))
        return Surveyed(plan=plan, values=used, parameters={p.name: p for p in (ALGO, own)})

    space = PlannedSpace(survey)
    space.prepare(GIB)
    assert space.next_parameter({}) == ALGO
    assert space.next_parameter({"algo": "ppo"}) == STEP
    assert space.next_parameter({"algo": "ppo", "n_steps": 17}) is None
    with pytest.raises(KeyError):
        space.next_parameter({"algo": "sac"})
    space.learn({"algo": "sac"})
    assert space.next_parameter({"algo": "sac"}) == BUFFER
    before = len(surveys)
    assert space.ask({"algo": "sac", "buffer_size": 9000}).peak_bytes == BASE + 9000 * 2**10
    assert space.ask({"algo": "ppo", "n_steps": 500}).peak_bytes == BASE + 500 * 2**10
    assert len(surveys) == before


def test_a_setting_that_is_not_given_is_missed() -> None:
    space = PlannedSpace(Run())
    space.prepare(GIB)
    with pytest.raises(UsageError, match="asks for n_steps, width too"):
        space.ask({"lr": 0.2})


def test_a_name_that_no_plan_has_is_refused() -> None:
    with pytest.raises(UsageError, match="the plan has no setting steps: it has n_steps"):
        PlannedSpace(Run(), knobs={"rollout": "steps"}).prepare(GIB)


def test_a_limit_below_the_imports_is_refused() -> None:
    with pytest.raises(UsageError, match="its imports alone take 200 MiB: give more"):
        PlannedSpace(Run()).prepare(BASE - 1)


def test_a_planned_space_answers_a_thousand_times_a_second() -> None:
    """In time of the processor, so that other work on the machine does not count."""
    space = PlannedSpace(Run())
    space.prepare(GIB)
    started = time.process_time()
    for steps in range(16, 1016):
        space.ask({"lr": 0.2, "n_steps": steps, "width": 8})
    assert time.process_time() - started < 1
