"""What follows learn() becomes rows of a moment of its own, beside what the script still holds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memfit.analyses.after_learn import frames_held, with_after
from memfit.analyses.crossing import crossing
from memfit.model import (
    AFTER,
    AfterEnd,
    AfterReading,
    EvidenceKind,
    HeldFrames,
    Kind,
    Ledger,
    const,
    knob,
)
from tests.samples import row

MIB = 2**20
LEDGER = Ledger(
    components=(
        row("libraries", Kind.BASE, const(300 * MIB), ("start", "build", "rollout", "update")),
        row("buffer", Kind.BUFFER, knob("n_steps") * MIB, ("rollout", "update")),
        row("minibatch", Kind.COPIES, const(50 * MIB), ("update",)),
        row("graph", Kind.ACTIVATIONS, const(20 * MIB), ("rollout", "update")),
    ),
    knobs={"n_steps": 10, "total_timesteps": 1000},
    length="total_timesteps",
)
FRAMES = HeldFrames(
    holder="RecordVideo.recorded_frames",
    count=100,
    each_bytes=MIB,
    shape=(512, 512, 4),
    line=12,
    episode_steps=500,
    beside=3 * MIB,
)
RECORDED = AfterReading(grown=103 * MIB, line=12, calling="step", frames=FRAMES)


def names(ledger: Ledger) -> list[str]:
    return [c.name for c in ledger.components if c.name.startswith("after.")]


def test_pictures_are_counted_to_the_end_of_an_episode() -> None:
    """501 of them, beside libraries, buffer and what else rose; minibatch and graph are gone."""
    ledger = with_after(LEDGER, RECORDED, counted=False)
    assert names(ledger) == ["after.recording", "after.rest"]
    assert ledger.moment_bytes[AFTER] == (300 + 10 + 501 + 3) * MIB
    recording = ledger.components[-2]
    assert str(recording.size) == f"video_frames * {MIB:,}"
    assert recording.evidence.kind is EvidenceKind.PROBED
    assert ledger.at(video_frames=11).moment_bytes[AFTER] == (300 + 10 + 11 + 3) * MIB


def test_what_was_seen_in_full_is_measured() -> None:
    ledger = with_after(LEDGER, RECORDED, counted=True)
    assert ledger.row_bytes["after.recording"] == 100 * MIB
    assert ledger.components[-2].evidence.kind is EvidenceKind.MEASURED


@pytest.mark.parametrize(
    ("length", "steps", "counted", "held"),
    [(0, 500, False, 501), (200, 500, False, 201), (0, 500, True, 100), (0, 0, False, 100)],
)
def test_how_many_pictures_are_held(length: int, steps: int, counted: bool, held: int) -> None:
    frames = replace(FRAMES, video_length=length, episode_steps=steps)
    assert frames_held(frames, counted=counted) == held


def test_a_loop_that_was_not_seen_to_its_end_is_not_taken_for_all() -> None:
    late = replace(RECORDED, ended=AfterEnd.TIME)
    assert with_after(LEDGER, late, counted=True).row_bytes["after.recording"] == 501 * MIB


@pytest.mark.parametrize(
    ("calling", "name"),
    [
        ("evaluate_policy", "after.evaluation"),
        ("load", "after.loading"),
        ("plot", "after.rest"),
        ("", "after.rest"),
    ],
)
def test_other_rises_are_named_by_what_the_script_was_doing(calling: str, name: str) -> None:
    ledger = with_after(
        LEDGER, AfterReading(grown=40 * MIB, line=7, calling=calling), counted=False
    )
    assert ledger.row_bytes[name] == 40 * MIB
    assert "line 7" in ledger.components[-1].evidence.where


def test_a_model_that_is_gone_takes_its_buffers_along() -> None:
    gone = AfterReading(grown=40 * MIB, model_alive=False)
    assert with_after(LEDGER, gone, counted=False).moment_bytes[AFTER] == 340 * MIB


def test_next_to_nothing_is_no_row() -> None:
    assert with_after(LEDGER, AfterReading(grown=MIB // 2), counted=False) is LEDGER


def test_the_limit_is_crossed_when_all_steps_are_done() -> None:
    over = crossing(with_after(LEDGER, RECORDED, counted=False), 700 * MIB)
    assert over is not None
    assert (over.step, over.moment, over.because) == (1000, AFTER, "after.recording")
