"""A run is dealt out to as many nodes as its upper bound takes, and each row is a part of one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfit.analyses.nodes import (
    EXCHANGE,
    GRADIENTS,
    SHARD,
    dealt_knob,
    largest_share,
    nodes_plan,
    with_exchange,
)
from memfit.analyses.upper_bound import upper_bytes
from memfit.api.plan_nodes import plan_nodes
from memfit.errors import UsageError
from memfit.model import Kind, Plan, Readings
from memfit.units import GIB
from tests.samples import ppo_plan

READINGS = Readings(stopped=0, warm=0, unit=1)
PLAN = replace(ppo_plan(), readings=READINGS)
LEDGER = with_exchange(PLAN.ledger)


def test_envs_are_dealt_out() -> None:
    assert dealt_knob(LEDGER) == "n_envs"


def test_gradients_are_there_twice() -> None:
    rows = {c.name: LEDGER.bytes_of(c) for c in LEDGER.components if c.kind is Kind.GRADIENTS}
    exchanged = rows.pop(EXCHANGE)
    assert exchanged == sum(rows.values()) > 0


@given(whole=st.integers(1, 10**12), node=st.integers(2, 4096))
def test_there_are_as_many_nodes_as_it_takes(whole: int, node: int) -> None:
    found = nodes_plan(LEDGER.at(n_envs=10**9), READINGS, "n_envs", whole, node * GIB)
    assert found is not None
    assert (found.count - 1) * found.each < whole <= found.count * found.each
    assert found.upper_bytes <= node * GIB
    assert sum(found.parts.values()) == sum(found.evidence.values()) == found.peak_bytes
    assert found.upper_bytes == upper_bytes(LEDGER.at(n_envs=found.each), READINGS)


def test_a_share_is_the_largest_that_fits() -> None:
    ledger = LEDGER.at(n_envs=10**9)
    most = largest_share(ledger, READINGS, "n_envs", 24 * GIB)
    assert upper_bytes(ledger.at(n_envs=most), READINGS) <= 24 * GIB
    assert upper_bytes(ledger.at(n_envs=most + 1), READINGS) > 24 * GIB


def test_a_share_is_planned_at_its_own_size() -> None:
    whole = replace(PLAN, ledger=PLAN.ledger.at(n_envs=10**6))
    asked: list[dict[str, int]] = []

    def replan(share: dict[str, int]) -> Plan:
        asked.append(share)
        return replace(PLAN, ledger=PLAN.ledger.at(**share))

    found = plan_nodes(whole, replan, 24 * GIB)  # type: ignore[arg-type]
    assert len(asked) == 1 and found.knob == "n_envs" and found.whole == 10**6
    assert found.count > 1 and found.parts[SHARD] > found.peak_bytes // 2
    assert GRADIENTS in found.parts or found.ledger.peak.phase != "update"
    small = plan_nodes(PLAN, replan, 64 * GIB)  # type: ignore[arg-type]
    assert (small.count, small.each) == (1, PLAN.ledger.knobs["n_envs"])
    assert len(asked) == 1, "a run that fits one node is planned already"


def test_a_node_that_does_not_hold_one_of_them_is_refused() -> None:
    with pytest.raises(UsageError, match="does not hold this run with n_envs=1: give larger nodes"):
        plan_nodes(PLAN, lambda share: PLAN, 2**20)


def test_nothing_is_a_bad_node() -> None:
    with pytest.raises(UsageError, match="give the memory of one node"):
        plan_nodes(PLAN, lambda share: PLAN, 0)
