"""The size of a micro-batch: the largest within a limit, by a plan and by a measured update."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfit.dropins import micro_batch_for
from memfit.dropins.updates.size import UpdateBytes, evenly, largest_fitting
from memfit.errors import UsageError
from memfit.model import Component, Evidence, EvidenceKind, Kind, Ledger, const, knob

GIB = 2**30


def row(name: str, size: Any, *phases: str) -> Component:
    evidence = Evidence(kind=EvidenceKind.DERIVED, where="a test")
    return Component(name=name, kind=Kind.SCRATCH, size=size, phases=phases, evidence=evidence)


def ledger(batch: int) -> Ledger:
    rows = (
        row("base", const(GIB), "rollout", "update"),
        row("activations", knob("batch_size") * (GIB // 64), "update"),
    )
    return Ledger(components=rows, knobs={"batch_size": batch, "n_steps": 2048})


def test_a_plan_says_which_micro_batch_fits() -> None:
    assert micro_batch_for(ledger(256), 2 * GIB) == 64
    assert micro_batch_for(ledger(256), "64GiB") == 256
    assert micro_batch_for(ledger(100), "1.25GiB") == 15  # seven pieces: six of 15, one of 10
    with pytest.raises(UsageError, match=r"1.02 GiB \(update\).*larger limit"):
        micro_batch_for(ledger(256), "1GiB")
    with pytest.raises(UsageError, match="minibatches"):
        micro_batch_for(Ledger(components=(), knobs={"n_envs": 3}), "1GiB")
    with pytest.raises(UsageError, match="no limit"):
        micro_batch_for(ledger(256))


@given(
    resident=st.integers(0, 10**6),
    asked=st.integers(0, 10**6),
    samples=st.integers(1, 64),
    batch=st.integers(1, 5000),
    limit=st.integers(0, 10**8),
)
def test_the_largest_that_fits_is_found(
    resident: int, asked: int, samples: int, batch: int, limit: int
) -> None:
    took = UpdateBytes(
        resident=resident, to_come=0, gradients=asked // 3, samples=samples, asked=asked
    )
    found = largest_fitting(took.peak, batch, limit)
    assert 0 <= found <= batch
    assert not found or took.peak(found) <= limit
    assert found == batch or took.peak(found + 1) > limit
    if found:
        even = evenly(batch, found)
        assert even <= found
        assert -(-batch // even) == -(-batch // found)
