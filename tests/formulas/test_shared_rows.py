"""Rows that every kind of run has, with their bytes worked out by hand."""

from __future__ import annotations

from dataclasses import replace

from memfit.formulas.shared_rows import (
    BUILT,
    TRAINING,
    Part,
    base_rows,
    derived,
    gradient_bytes,
    line,
    network_rows,
    only,
    probed,
    update_rows,
)
from memfit.model import PHASES, Component, EvidenceKind, Kind, NetworkSpec, Slope, const, knob
from tests.formulas.runs import ON_POLICY


def bytes_of(rows: list[Component], **knobs: int) -> dict[str, int]:
    return {row.name: row.size.evaluate(knobs) for row in rows}


def test_base_rows_are_imports_build_and_first_use() -> None:
    rows = list(base_rows(imports=30, built=17, used=12, where="the process"))
    assert bytes_of(rows) == {"base.imports": 30, "base.build": 17, "base.first_use": 12}
    assert [row.phases for row in rows] == [PHASES, BUILT, TRAINING]
    assert {row.kind for row in rows} == {Kind.BASE}
    assert {row.evidence.kind for row in rows} == {EvidenceKind.MEASURED}
    assert rows[1].evidence.where == "the process, less the rows named here"


def test_a_base_row_is_never_negative() -> None:
    rows = list(base_rows(imports=30, built=-3, used=-12, where=""))
    assert bytes_of(rows) == {"base.imports": 30, "base.build": 0, "base.first_use": 0}


def test_parts_of_what_building_loads_have_rows_and_the_sum_stays() -> None:
    """The last one is cut: all of 17 has a name by then."""
    parts = {"imported.a": (9, "importing a"), "held.b": (5, "b"), "held.c": (8, "c")}
    rows = list(base_rows(imports=30, built=17, used=12, where="", parts=parts))
    assert bytes_of(rows) == {
        "base.imports": 30,
        "base.imported.a": 9,
        "base.held.b": 5,
        "base.held.c": 3,
        "base.build": 0,
        "base.first_use": 12,
    }
    assert {row.phases for row in rows[1:5]} == {BUILT}
    assert rows[1].evidence.where == "importing a"


def test_networks_have_parameters_gradients_and_optimizer_state() -> None:
    rows = list(network_rows(ON_POLICY, lambda network: f"the {network.name}"))
    assert bytes_of(rows) == {
        "policy.parameters": 1000,
        "policy.gradients": 900,
        "policy.optimizer": 2000,
    }
    assert [row.phases for row in rows] == [BUILT, TRAINING, TRAINING]
    assert [row.kind for row in rows] == [Kind.PARAMETERS, Kind.GRADIENTS, Kind.OPTIMIZER]
    assert [row.evidence.where for row in rows] == [
        "the policy",
        "the policy: one for each trained parameter",
        "Adam's state after its first step",
    ]


def test_a_network_that_is_not_trained_has_its_parameters_only() -> None:
    target = NetworkSpec(name="target", parameter_bytes=70, gradient_bytes=0)
    spec = replace(ON_POLICY, networks=(target, *ON_POLICY.networks))
    rows = list(network_rows(spec, lambda network: network.name, "and its buffers"))
    assert [row.name for row in rows[:2]] == ["target.parameters", "policy.parameters"]
    assert rows[0].evidence.where == "target: and its buffers"
    assert gradient_bytes(spec) == 900


def test_a_network_without_parameters_has_a_row_of_nothing() -> None:
    empty = NetworkSpec(name="empty", parameter_bytes=0, gradient_bytes=0)
    rows = list(network_rows(replace(ON_POLICY, networks=(empty,)), lambda network: network.name))
    assert bytes_of(rows) == {"empty.parameters": 0}


def part(name: str, fixed: int, per_unit: int) -> Part:
    return name, Kind.COPIES, Slope(fixed=fixed, per_unit=per_unit), derived(name)


def updated(parts: list[Part], live: Slope, now: int = 10) -> list[Component]:
    return list(
        update_rows(
            parts,
            live,
            samples=knob("batch_size"),
            now=now,
            phases=("update",),
            scratch=probed("a recording"),
        )
    )


LIVE = Slope(fixed=1000, per_unit=50)  # 1,500 at ten samples


def test_what_has_no_name_is_scratch() -> None:
    rows = updated([part("inputs", 0, 20), part("activations", 300, 10)], LIVE)
    assert bytes_of(rows, batch_size=10) == {
        "inputs": 200,
        "activations": 400,
        "update.scratch": 900,
    }
    assert bytes_of(rows, batch_size=20) == {
        "inputs": 400,
        "activations": 500,
        "update.scratch": 1100,
    }
    assert rows[-1].kind is Kind.SCRATCH and rows[-1].evidence.kind is EvidenceKind.PROBED


def test_a_part_that_does_not_fit_stays_with_the_scratch() -> None:
    rows = updated([part("inputs", 0, 20), part("activations", 0, 131)], LIVE)
    assert bytes_of(rows, batch_size=10) == {"inputs": 200, "update.scratch": 1300}
    rows = updated([part("inputs", 0, 20), part("activations", 0, 130)], LIVE)
    assert bytes_of(rows, batch_size=10) == {
        "inputs": 200,
        "activations": 1300,
        "update.scratch": 0,
    }


def test_a_part_of_no_bytes_has_no_row() -> None:
    assert bytes_of(updated([part("inputs", 0, 0)], LIVE), batch_size=10) == {
        "update.scratch": 1500
    }


def test_scratch_is_never_negative() -> None:
    """The part fits at ten samples, and grows beyond what is alive at more."""
    rows = updated([part("activations", 0, 130)], LIVE)
    assert bytes_of(rows, batch_size=10)["update.scratch"] == 200
    assert bytes_of(rows, batch_size=100)["update.scratch"] == 0


def test_a_row_is_kept_in_the_phases_that_the_run_has() -> None:
    row = next(base_rows(imports=1, built=0, used=0, where=""))
    assert only(row, {"start", "update"}).phases == ("start", "update")
    dotted = replace(row, phases=("update.flatten", "save"))
    assert only(dotted, {"update"}).phases == ("update.flatten",)
    assert only(dotted, {"rollout"}).phases == ()


def test_a_line_over_a_size() -> None:
    size = line(Slope(fixed=7, per_unit=3), knob("n"))
    assert size.evaluate({"n": 5}) == 22
    assert line(Slope(fixed=7, per_unit=3), const(5)) == const(22)
