"""Surveys of trainings whose allocations are known to the byte."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

pytest.importorskip("torch")
from memfit.errors import Unsupported
from memfit.formulas.array_bytes import scaled
from memfit.measure.kernel import proc
from memfit.measure.survey.filling_sizes import FILLED
from memfit.measure.survey.surveyor import ASSUMED_SAMPLE_BYTES, Surveyor
from memfit.model import NO_SLOPE, Readings, Slope
from memfit.model.training import Mark, Work
from memfit.units import MIB
from tests.measure.survey.trainings import FIXED_BYTES, SAMPLE_BYTES, Torch, spec_of

# The replays' process is forked where torch has threads, of which it uses none.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")

LARGE = 1024  # samples: their tensors are larger than what malloc keeps on its heap
ALIVE = FIXED_BYTES + LARGE * 2 * SAMPLE_BYTES


@pytest.fixture(autouse=True)
def _unfrozen() -> Iterator[None]:
    """Forking keeps the garbage collector away from what there is."""
    yield
    gc.unfreeze()


def surveyed(training: Torch, *, stopped: int = 0) -> Readings:
    spec = training.spec
    larger = {**spec.knobs, **scaled(spec, times=2)}
    return Surveyor(training, stopped=stopped, knobs=spec.knobs, larger=larger).run()


def near(slope: Slope, fixed: int, per_unit: int) -> bool:
    """Tensors to the byte, and beside them the few small objects that torch has with each."""
    return slope.per_unit == per_unit and fixed <= slope.fixed <= fixed + 4096


def test_readings_of_an_update_whose_bytes_are_known() -> None:
    training = Torch(spec_of())
    readings = surveyed(training, stopped=123)
    assert readings.stopped == 123
    assert readings.unit == 256
    assert near(readings.live, FIXED_BYTES, 2 * SAMPLE_BYTES)
    assert readings.activations == Slope(fixed=0, per_unit=SAMPLE_BYTES)
    assert readings.matched_share > 0.999
    assert readings.graph == NO_SLOPE
    assert not readings.assumed and not readings.notes
    assert set(readings.growth) == set(readings.growth_spread) == {"update"}


def test_the_growth_is_what_an_update_of_the_runs_own_size_holds() -> None:
    training = Torch(spec_of(batch_size=LARGE))
    readings = surveyed(training)
    assert max(training.batches) < LARGE
    assert readings.growth["update"].at(LARGE) == pytest.approx(ALIVE, rel=0.1)
    assert readings.growth["update"].per_unit == pytest.approx(2 * SAMPLE_BYTES, rel=0.1)
    assert [one.growth["update"] + readings.warm for one in readings.further] == [
        pytest.approx(filled, rel=0.1) for filled in FILLED
    ]
    for one in readings.further:
        alive = FIXED_BYTES + one.knobs["batch_size"] * 2 * SAMPLE_BYTES
        assert one.growth["update"] == pytest.approx(alive, rel=0.1)


def test_warm_has_what_the_first_update_left() -> None:
    training = Torch(spec_of(batch_size=4), first_use=64 * MIB)
    before = proc.tree_memory(os.getpid()).alone
    readings = surveyed(training)
    assert readings.warm - before == pytest.approx(64 * MIB, abs=8 * MIB)


def test_a_rollout_that_records_gradients_keeps_its_steps() -> None:
    """Three steps of 1,600 samples are one update of 4,800: blocks that malloc always maps."""
    spec = spec_of(
        batch_size=4800,
        rollout="batch_size // steps",
        steps="steps",
        records_gradients=True,
    )
    readings = surveyed(Torch(spec))
    assert near(readings.graph, 0, SAMPLE_BYTES)
    assert readings.unit == 4800
    assert set(readings.growth) == {"rollout", "update"}
    # After three steps, all of what they keep is there, a little of it in blocks that were free.
    kept = 4800 * SAMPLE_BYTES
    assert 0.99 * kept <= readings.growth["rollout"].at(4800) < 1.4 * kept


def test_padding_makes_minibatches_wider() -> None:
    training = Torch(spec_of(batch_size=64))
    training.padded = 1.5
    assert near(surveyed(training).live, FIXED_BYTES, 3 * SAMPLE_BYTES)


def test_the_library_may_ask_for_the_size_at_which_updates_are_recorded() -> None:
    training = Torch(spec_of())
    training.recorded_samples = 40
    surveyed(training)
    assert {20, 40} <= set(training.batches)
    assert max(training.batches) == 40


def test_blocks_that_cannot_be_matched_may_grow_as_far_as_an_update_is_larger() -> None:
    """Recorded at 368 samples, a run of 3,680 may have nine times more of them."""
    training = Torch(spec_of(batch_size=3680))
    training.recorded_samples = 368
    training.odd_bytes = 1_000_000
    readings = surveyed(training)
    share = 1 - readings.matched_share
    assert share > 0
    recorded = FIXED_BYTES + 1_000_000 + 368 * 2 * SAMPLE_BYTES
    assert readings.unmatched == pytest.approx(9 * share * recorded, rel=0.01)
    training = Torch(spec_of(batch_size=368))
    training.odd_bytes = 1_000_000
    assert surveyed(training).unmatched == 0


def test_all_of_an_update_is_in_doubt_that_follows_the_lengths_of_episodes() -> None:
    training = Torch(spec_of())
    training.follows_episodes = True
    readings = surveyed(training)
    assert readings.unmatched == readings.live.at(readings.unit)


@pytest.mark.parametrize("steps", [1, 8])
def test_updates_that_take_whole_steps_of_many_envs_are_recorded_at_two_sizes(steps: int) -> None:
    """Both sizes that would do are less than one step of 600 envs."""
    training = Torch(spec_of(batch_size=600 * steps))
    training.whole = 600
    assert near(surveyed(training).live, FIXED_BYTES, 2 * SAMPLE_BYTES)
    assert set(training.batches) == {600, 1200}


# -- where an update fails -----------------------------------------------------------------------


def test_where_no_update_can_be_run_it_is_assumed_from_the_trace() -> None:
    readings = surveyed(Torch(spec_of(), most=0))
    assert readings.assumed
    assert readings.live == Slope(fixed=0, per_unit=2 * SAMPLE_BYTES)
    assert readings.activations == Slope(fixed=0, per_unit=SAMPLE_BYTES)
    assert readings.growth == {}
    assert readings.unit == 256
    assert readings.warm == pytest.approx(proc.tree_memory(os.getpid()).alone, rel=0.1)
    (note,) = readings.notes
    assert "RuntimeError: no update of this size" in note and "--probe" in note


def test_where_nothing_can_be_traced_either_it_is_a_guess() -> None:
    training = Torch(spec_of(), most=0)
    training.traceable = False
    readings = surveyed(training)
    assert readings.assumed and readings.activations is None
    assert readings.live == Slope(fixed=0, per_unit=2 * ASSUMED_SAMPLE_BYTES)


def test_what_the_runs_own_code_raises_is_raised() -> None:
    training = Torch(spec_of(), most=0)
    training.running_its_own = True
    with pytest.raises(RuntimeError, match="no update of this size"):
        surveyed(training)


@pytest.mark.parametrize("own", [False, True])
def test_an_update_that_fails_at_the_runs_own_size_leaves_no_process(own: bool) -> None:
    """The small ones went well, and the process that is to replay them waits already."""
    before = set(proc.children(os.getpid()))
    training = Torch(spec_of(), most=200)
    training.running_its_own = own
    if own:
        with pytest.raises(RuntimeError):
            surveyed(training)
    else:
        assert surveyed(training).assumed
    assert set(proc.children(os.getpid())) <= before


def test_what_cannot_be_traced_is_recorded_all_the_same() -> None:
    training = Torch(spec_of(batch_size=64))
    training.traceable = False
    readings = surveyed(training)
    assert readings.activations is None and not readings.assumed
    assert near(readings.live, FIXED_BYTES, 2 * SAMPLE_BYTES)


def test_what_one_sample_takes_is_told_by_an_update_of_whole_steps() -> None:
    """An update of two samples is one of 35: each takes that much less than half of it."""
    training = Torch(spec_of(batch_size=7000))
    training.traceable, training.whole = False, 35
    assert near(surveyed(training).live, FIXED_BYTES, 2 * SAMPLE_BYTES)
    assert max(training.batches) > 300


def test_the_first_update_may_show_another_unit() -> None:
    """An update that takes all at once says so in the training's facts when it is over."""

    class AllAtOnce(Torch):
        def update(self, work: Work, mark: Mark) -> None:
            super().update(work, mark)
            self.spec = replace(spec_of(batch_size=64), update=spec_of(minibatch=32).update)

    assert surveyed(AllAtOnce(spec_of(batch_size=64))).unit == 32


def test_without_memray_the_survey_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "memray", None)
    with pytest.raises(Unsupported, match=r"pip install 'memfit\[torch\]'"):
        surveyed(Torch(spec_of()))
