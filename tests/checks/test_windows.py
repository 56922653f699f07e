"""The bytes that checks give to windowed buffers are those of the formulas."""

from __future__ import annotations

import pytest

from memfit.checks._rows import row
from memfit.checks._windows import FLATTEN_COPY, window_replay, window_rollout
from memfit.formulas import dropin_arrays
from tests.checks.runs import dqn, ppo


@pytest.mark.parametrize("stack", [1, 4])
@pytest.mark.parametrize("n_envs", [1, 8])
def test_a_rollout_is_as_the_formula_says(stack: int, n_envs: int) -> None:
    spec, ledger = ppo(knobs={"n_envs": n_envs})
    changed = window_rollout(spec, ledger, stack)
    held = row(changed, "rollout_buffer.observations")
    formula = dropin_arrays.window_rollout(length=stack, row_bytes=28_224 // stack)
    assert held is not None
    assert ledger.bytes_of(held) == formula.evaluate(spec.knobs)
    copy = row(changed, FLATTEN_COPY)
    assert copy is not None
    assert ledger.bytes_of(copy) == (1024 * 8 * 4 if n_envs > 1 else 0)  # the rewards


@pytest.mark.parametrize("stack", [1, 4])
@pytest.mark.parametrize("steps", [30_000, 1_000_000])
def test_a_replay_is_nearly_as_the_formula_says(stack: int, steps: int) -> None:
    """Frames come in extents of 4 MiB, and the numbers that say where they are in one piece."""
    spec, ledger = dqn(knobs={"total_timesteps": steps})
    changed = window_replay(spec, ledger, stack)
    names = ("replay_buffer.observations", "replay_buffer.next_observations")
    held = sum(changed.bytes_of(c) for c in changed.components if c.name in names)
    formula = dropin_arrays.window_replay(length=stack, row_bytes=28_224 // stack)
    exact = formula.evaluate({**spec.knobs, "episodes": 0})
    assert abs(held - exact) <= dropin_arrays.CHUNK_BYTES + 8 * (100_000 - min(steps, 100_000))
