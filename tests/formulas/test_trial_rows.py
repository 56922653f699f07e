"""Rows of a trial add up to what the kernel counted; buffers that fill hold what they will."""

from __future__ import annotations

from memfit.formulas.run_rows import run_ledger
from memfit.formulas.trial_rows import trial_rows
from memfit.model import ArraySpec, EvidenceKind, Readings, RunSpec
from memfit.model.trial import TrialAgain, TrialEnd, TrialReading

MIB = 2**20
TRAINING = ("rollout", "update", "evaluate", "save")


def spec(*arrays: ArraySpec, **knobs: int) -> RunSpec:
    return RunSpec(
        library="loop",
        version="",
        algorithm="training loop",
        policy="",
        knobs=knobs,
        on_policy=True,
        arrays=arrays,
        length="steps" if "steps" in knobs else "",
    )


def array(name: str, *shape: int | str, filled: str | None = None) -> ArraySpec:
    return ArraySpec(
        name=name,
        shape=shape,
        dtype="uint8",
        itemsize=1,
        phases=TRAINING,
        filled=filled,
        evidence=EvidenceKind.MEASURED,
    )


def readings(held: dict[str, int], again: TrialAgain | None = None) -> Readings:
    trial = TrialReading(
        updates=10,
        cycles=2,
        env_steps=100,
        seconds=1.0,
        ended=TrialEnd.SEEN,
        peaks={"build": 210 * MIB, "rollout": 310 * MIB, "update": 400 * MIB},
        built=200 * MIB,
        now=300 * MIB,
        free=20 * MIB,
        held=held,
        again=again,
    )
    return Readings(stopped=trial.built, warm=trial.now, unit=1, base=150 * MIB, trial=trial)


def test_each_phase_is_what_the_kernel_counted() -> None:
    run = spec(array("obs", 50 * MIB))
    ledger = run_ledger(run, trial_rows(run, readings({"obs": 50 * MIB})))
    assert ledger.phase_bytes["update"] == ledger.peak.bytes == 400 * MIB
    assert ledger.phase_bytes["rollout"] == 310 * MIB
    rows = ledger.row_bytes
    assert rows["base.imports"] == 150 * MIB and rows["obs"] == 50 * MIB
    assert rows["allocator.slack.rollout"] == 20 * MIB
    assert len(rows) == len(ledger.components)


def test_a_filling_buffer_is_what_it_holds_at_the_runs_end() -> None:
    run = spec(array("rb", 1000, MIB, filled="steps"), steps=500)
    ledger = run_ledger(run, trial_rows(run, readings({"rb": 100 * MIB})))
    assert ledger.row_bytes["rb"] == 500 * MIB
    assert ledger.peak.bytes == (400 + 400) * MIB
    assert ledger.first_over(600 * MIB) == 301  # 200 MiB more than in the trial


def test_what_an_update_adds_grows_as_two_trials_say() -> None:
    run = spec(array("obs", "envs", MIB), envs=40)
    again = TrialAgain(
        knobs={"envs": 20},
        peaks={"update": 350 * MIB},
        held={"obs": 20 * MIB},
        objects=40 * MIB,  # as many as in the first
    )
    ledger = run_ledger(run, trial_rows(run, readings({"obs": 40 * MIB}, again)))
    assert ledger.peak.bytes == 400 * MIB
    # 20 more envs are 20 MiB of arrays, and 30 MiB of what comes and goes.
    assert ledger.at(envs=60).peak.bytes == 450 * MIB


def test_graphs_that_a_rollout_keeps_grow_as_two_trials_say() -> None:
    run = spec(array("obs", "envs", MIB), envs=40)
    again = TrialAgain(
        knobs={"envs": 20},
        peaks={"rollout": 260 * MIB, "update": 350 * MIB},
        held={"obs": 20 * MIB},
        objects=20 * MIB,
    )
    ledger = run_ledger(run, trial_rows(run, readings({"obs": 40 * MIB}, again)))
    assert ledger.peak.bytes == 400 * MIB and ledger.row_bytes["run.objects"] == 40 * MIB
    more = ledger.at(envs=60)
    # 20 more envs are 20 MiB of arrays, 20 of objects, and 10 of what comes and goes.
    assert more.row_bytes["run.objects"] == 60 * MIB
    assert more.peak.bytes == 450 * MIB
    assert more.phase_bytes["rollout"] == 360 * MIB
