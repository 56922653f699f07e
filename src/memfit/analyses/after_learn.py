"""What a script adds when training is over: evaluation, loading, videos."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from memfit.formulas.shared_rows import measured, probed
from memfit.model import (
    AFTER,
    AfterEnd,
    AfterReading,
    Component,
    Evidence,
    HeldFrames,
    Kind,
    Ledger,
    const,
    knob,
)
from memfit.units import MIB

FRAMES = "video_frames"  # the knob: how many pictures are held at once
# A row by what the script's line was doing at the highest point.
_DOING = {
    "load": "loading",
    **dict.fromkeys(("evaluate_policy", "predict", "step", "reset"), "evaluation"),
}
_LEAST = MIB  # a smaller rise is chance
_RISE = "the rest of the script, with nothing trained: what the kernel counted above learn()'s end"
# What goes with the model where the script no longer holds it.
_OF_MODEL = {Kind.BUFFER, Kind.GRADIENTS, Kind.OPTIMIZER}
# What is there in a rollout, and no longer when it is over.
_OF_ROLLOUT = {Kind.ACTIVATIONS, Kind.SCRATCH}


def with_after(ledger: Ledger, after: AfterReading, *, counted: bool) -> Ledger:
    """The ledger with what follows learn(), in a moment of its own.

    `counted` says that the script's own loop decides how many pictures it takes, not an episode.
    """
    frames = after.frames
    count = frames_held(frames, counted=counted and after.ended is AfterEnd.WHOLE) if frames else 0
    rows = list(_rows(after, count))
    if not rows:
        return ledger
    during = "rollout" if "rollout" in ledger.phase_bytes else "build"
    gone = _OF_ROLLOUT if after.model_alive else _OF_ROLLOUT | _OF_MODEL
    kept = tuple(
        _kept_on(c) if c.alive_in(during) and c.kind not in gone else c for c in ledger.components
    )
    knobs = {**ledger.knobs, FRAMES: count} if frames and _is_recording(after, count) else None
    changed = ledger.with_rows((*kept, *rows))
    return changed if knobs is None else changed.at(**knobs)


def frames_held(frames: HeldFrames, *, counted: bool) -> int:
    """How many pictures a list comes to hold: one more than steps, where these are known."""
    if frames.video_length:
        return frames.video_length + 1
    if counted or not frames.episode_steps:
        return frames.count
    return max(frames.count, frames.episode_steps + 1)


def _kept_on(component: Component) -> Component:
    if component.alive_in(AFTER):
        return component
    return replace(component, phases=(*component.phases, AFTER))


def _is_recording(after: AfterReading, count: int) -> bool:
    """Whether the highest point is where pictures are held."""
    frames = after.frames
    return frames is not None and frames.beside + count * frames.each_bytes >= after.grown - _LEAST


def _rows(after: AfterReading, count: int) -> Iterator[Component]:
    frames = after.frames
    if frames is not None and _is_recording(after, count):
        yield _row("recording", Kind.ARRAYS, _frames_evidence(frames, count), frames=frames)
        if frames.beside >= _LEAST:
            where = f"{_RISE}, the pictures apart (line {frames.line})"
            yield _row("rest", Kind.OBJECTS, measured(where), amount=frames.beside)
    elif after.grown >= _LEAST:
        called = f", in {after.calling}()" if after.calling else ""
        where = f"{_RISE} (highest at line {after.line}{called})"
        name = _DOING.get(after.calling, "rest")
        yield _row(name, Kind.OBJECTS, measured(where), amount=after.grown)


def _row(
    name: str,
    kind: Kind,
    evidence: Evidence,
    *,
    amount: int = 0,
    frames: HeldFrames | None = None,
) -> Component:
    return Component(
        name=f"after.{name}",
        kind=kind,
        size=const(amount) if frames is None else knob(FRAMES) * frames.each_bytes,
        phases=(AFTER,),
        evidence=evidence,
    )


def _frames_evidence(frames: HeldFrames, count: int) -> Evidence:
    shape = " x ".join(map(str, frames.shape))
    seen = f"{frames.holder} held {frames.count:,} pictures of {shape} at line {frames.line}"
    if count <= frames.count:
        return measured(seen)
    why = "its video_length" if frames.video_length else "the time limit of an episode"
    return probed(f"{seen}; {count:,} by {why}")
