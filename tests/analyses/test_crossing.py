"""A run dies at the first step that needs more than the limit."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from memfit.analyses.crossing import crossing
from memfit.model import Kind, Ledger, const, knob
from memfit.units import GIB, MIB
from tests.samples import dqn_ledger, ppo_ledger, row


def test_a_run_that_fits_never_crosses() -> None:
    ledger = ppo_ledger()
    assert crossing(ledger, ledger.peak.bytes) is None


@given(st.integers(300 * MIB, 7 * GIB))
def test_a_filling_replay_dies_at_an_exact_step(limit: int) -> None:
    ledger = dqn_ledger()
    found = crossing(ledger, limit)
    if found is None:
        assert ledger.peak.bytes <= limit
        return
    assert ledger.at(total_timesteps=found.step).peak.bytes > limit
    assert ledger.at(total_timesteps=found.step - 1).peak.bytes <= limit
    assert found.because == "replay.observations"
    assert found.moment == "update"


def test_a_run_without_room_for_its_update_dies_after_the_first_rollout() -> None:
    ledger = ppo_ledger()
    found = crossing(ledger, ledger.moment_bytes["rollout"])
    assert found is not None
    assert (found.step, found.moment) == (8 * 256, "update.flatten")
    assert found.because == "import base"


def test_a_run_without_room_for_its_libraries_dies_at_once() -> None:
    for ledger in (ppo_ledger(), dqn_ledger()):
        found = crossing(ledger, MIB)
        assert found is not None
        assert (found.step, found.moment, found.because) == (0, "start", "import base")


def test_a_run_of_unknown_length_dies_at_once() -> None:
    ledger = Ledger(components=(row("buffer", Kind.BUFFER, const(GIB), ("update",)),))
    found = crossing(ledger, MIB)
    assert found is not None
    assert (found.step, found.because) == (0, "buffer")


def beginning(ledger: Ledger, steps: int) -> Ledger:
    """The same run, which learns after so many steps."""
    begins = knob("learning_starts") + 1
    return replace(ledger.at(learning_starts=steps), first_update=begins)


def test_updates_count_only_from_where_they_begin() -> None:
    """Before `learning_starts` only the replay grows; what an update adds comes then."""
    ledger = dqn_ledger()
    rollout = ledger.moment_bytes["rollout"]
    replay = 84 * 84 * 1_000_000
    limit = rollout - replay // 2  # half a replay fits, if nothing else is there
    early, late = beginning(ledger, 100), beginning(ledger, 499_995)
    found = crossing(early, limit)
    assert found is not None
    assert found.moment == "update"
    assert found.step < 499_990
    found = crossing(late, limit)
    assert found is not None
    assert (found.step, found.moment) == (499_996, "update")
    found = crossing(beginning(ledger, 600_000), limit)
    assert found is not None
    assert (found.step, found.moment) == (500_001, "rollout")


def test_a_run_that_ends_before_it_learns_still_has_an_answer() -> None:
    ledger = beginning(dqn_ledger(), 10**9)
    found = crossing(ledger, ledger.peak.bytes - 1)
    assert found is not None
    assert found.step == ledger.knobs["total_timesteps"]
