"""A profile of an environment as blocks and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memfit.model import BaselineChange, EnvReading, MemoryVerdict, Profile, ProfileStep
from memfit.model.json_loader import to_json
from memfit.render.blocks import Block, Heading, Text, Tone, muted, names, numbers, section
from memfit.render.result_json import SCHEMA, picked
from memfit.units import format_bytes

_TONES = {MemoryVerdict.STABLE: Tone.GOOD, MemoryVerdict.LEAKING: Tone.BAD}
_CELLS = 24
_MOST_READINGS = 12


def profile_blocks(profile: Profile) -> list[Block]:
    """The verdict with its evidence, who holds what grows, and what an env costs."""
    found: list[Block] = [
        Heading(f"Profile of {profile.target}"),
        Text(_verdict(profile), _TONES.get(profile.verdict, Tone.PLAIN), verdict=True),
        Text(profile.judgement.why),
    ]
    found += muted([_stepped(profile)])
    if profile.holders:
        found += section(
            "Who holds what grew",
            (
                names("holder"),
                *numbers("grew by", "a frame", "things"),
                "what",
                names("class", whole=False),
            ),
            (
                (
                    holder.path,
                    format_bytes(holder.bytes),
                    _bytes(holder.per_frame),
                    f"{holder.elements:,}",
                    holder.what,
                    " at ".join(filter(None, (holder.owner, _short(holder.where)))),
                )
                for holder in profile.holders
            ),
        )
    if profile.sites:
        found += section(
            "Lines that allocated what stayed (a second run, which records allocations)",
            (names("line"), *numbers("bytes", "blocks"), names("by", whole=False)),
            (
                (_short(s.where), format_bytes(s.bytes), f"{s.count:,}", _short(s.by))
                for s in profile.sites
            ),
        )
    found += _costs(profile)
    found += _observation(profile)
    if profile.changed:
        found += section(
            "Beside the baseline",
            (names("row"), *numbers("before", "now", "change"), "beyond noise"),
            (_change(row) for row in profile.changed),
        )
    found += section(
        "Readings",
        numbers("frame", "episode", "in memory", "Python objects", "malloc", "threads", "files"),
        (_reading(reading) for reading in _some(profile.readings)),
    )
    return found + muted(f"note: {note}" for note in profile.notes)


def profile_line(step: ProfileStep, *, bar: bool) -> str:
    """Where a profile is, in one line."""
    done = min(_CELLS, _CELLS * step.frame // max(1, step.of))
    cells = f"[{'#' * done}{'-' * (_CELLS - done)}] " if bar else ""
    pace = f", {step.frames_per_second:,.0f} frames/s" if step.frames_per_second else ""
    held = f", {format_bytes(step.bytes)}" if step.bytes else ""
    return f"memfit: {cells}{step.stage}: {step.frame:,} of {step.of:,}{pace}{held}"


def profile_report(profile: Profile) -> str:
    """The report as a text file: `memory_profiling_report.txt`."""
    from memfit.render.terminal import to_text

    return to_text(profile_blocks(profile), width=100)


def profile_json(profile: Profile) -> dict[str, Any]:
    """The same for programs."""
    judged = profile.judgement
    return {
        "schema": SCHEMA,
        "kind": "profile",
        "target": profile.target,
        "verdict": profile.verdict.value,
        "why": judged.why,
        "grows": profile.kind.value if profile.kind else None,
        "bytes_per_frame": round(judged.bytes_per_frame),
        "bytes_per_episode": round(judged.bytes_per_episode),
        "interval": [round(judged.low), round(judged.high)],
        "growing": to_json(judged.growing),
        **picked(judged, "grown_bytes", "ends_at_bytes", "trimmed_bytes"),
        "unattributed_bytes": profile.unattributed_bytes,
        "holders": to_json(profile.holders),
        "sites": to_json(profile.sites),
        "bytes_per_env": _whole(profile.bytes_per_env),
        "bytes_per_worker": _whole(profile.bytes_per_worker),
        "bytes_per_env_noise": profile.env_noise(workers=False) if profile.costs else None,
        "costs": to_json(profile.costs),
        "observation": to_json(profile.stepped.observation),
        **picked(profile.stepped, "allocated_per_step", "copied_per_step", "shareable"),
        **picked(profile, "frames", "episodes", "peak_bytes"),
        "frames_per_second": round(profile.frames_per_second, 1),
        "readings": [_reading_json(reading) for reading in profile.readings],
        "changed": to_json(profile.changed),
        "notes": list(profile.notes),
        "seconds": round(profile.seconds, 3),
    }


def _verdict(profile: Profile) -> str:
    judged = profile.judgement
    name = profile.verdict.value.upper()
    if profile.verdict is MemoryVerdict.LEAKING:
        pace = f"{_bytes(judged.bytes_per_frame)} a frame"
        if judged.bytes_per_episode:
            pace += (
                f", {_bytes(judged.bytes_per_episode)} an episode "
                f"({_bytes(judged.low)} to {_bytes(judged.high)})"
            )
        kind = f" ({profile.kind.value})" if profile.kind else ""
        return f"{name}{kind}: {pace}"
    if profile.verdict is MemoryVerdict.FILLING and judged.ends_at_bytes is not None:
        return f"{name}: no leak, it ends at about {format_bytes(judged.ends_at_bytes)}"
    if profile.verdict is MemoryVerdict.RETAINED:
        return f"{name}: no leak, malloc keeps {format_bytes(judged.grown_bytes)} that was freed"
    return f"{name}: no leak"


def _stepped(profile: Profile) -> str:
    episodes = "episode" if profile.episodes == 1 else "episodes"
    where = "at the ends of episodes" if profile.episodes else "by the frame"
    return (
        f"{profile.stepped.env or profile.target}: {profile.frames:,} frames, "
        f"{profile.episodes:,} {episodes}, {profile.frames_per_second:,.0f} frames/s, peak "
        f"{format_bytes(profile.peak_bytes)}; judged {where}, read from outside"
    )


def _costs(profile: Profile) -> list[Block]:
    if not profile.costs:
        return []
    found = section(
        "What an env costs",
        (*numbers("envs", "processes", "memory"), "where"),
        (
            (
                f"{cost.n_envs:,}",
                f"{cost.processes:,}",
                format_bytes(cost.bytes),
                "worker processes" if cost.workers else "one process",
            )
            for cost in profile.costs
        ),
    )
    if profile.bytes_per_env is not None:
        found.append(Text(_one_more(profile, profile.bytes_per_env, workers=False)))
    if profile.bytes_per_worker is not None:
        found.append(Text(_one_more(profile, profile.bytes_per_worker, workers=True)))
    shareable = profile.stepped.shareable
    if shareable:
        found += section(
            "Equal in each env, and not written to: memfit.dropins.shared keeps one",
            (names("array"), *numbers("bytes", "each further env saves")),
            (
                (one.path, format_bytes(one.bytes), format_bytes(one.saves_bytes))
                for one in shareable
            ),
        )
    return found


def _one_more(profile: Profile, slope: float, *, workers: bool) -> str:
    where = "in a worker process" if workers else "env in one process"
    noise = profile.env_noise(workers=workers)
    if slope >= noise:
        return f"{_bytes(slope)} for one more {where}"
    return (
        f"one more {where} costs less than {format_bytes(noise)}, by which two "
        "processes differ that do the same: more --envs tell it closer"
    )


def _observation(profile: Profile) -> list[Block]:
    parts = profile.stepped.observation
    if not parts:
        return []
    found = section(
        "One observation",
        (names("key"), "dtype", "shape", *numbers("bytes"), "array", "repeats"),
        (
            (
                part.key,
                part.dtype,
                "x".join(map(str, part.shape)) or "one number",
                format_bytes(part.bytes),
                ("a new one each step" if part.fresh else "the same one again")
                + (f", a view of {format_bytes(part.view_of)}" if part.view_of else ""),
                (f"{part.repeats:.0%} of the one before" if part.repeats else "")
                + (f" all of it is in {part.within}" if part.within else ""),
            )
            for part in parts
        ),
    )
    allocated, copied = profile.stepped.allocated_per_step, profile.stepped.copied_per_step
    found.append(
        Text(
            f"a step allocates {format_bytes(allocated)} at its peak by Python and numpy; new "
            f"arrays of the observation are {format_bytes(copied)}"
            + (" of it" if copied <= allocated else ", which a library of C allocates itself")
        )
    )
    return found


def _change(row: BaselineChange) -> tuple[str, ...]:
    return (
        row.name,
        f"{row.before:,.0f}",
        f"{row.after:,.0f}",
        f"{row.change:+,.0f}",
        "yes" if row.beyond_noise else "",
    )


def _some(readings: tuple[EnvReading, ...]) -> Iterator[EnvReading]:
    step = -(-len(readings) // _MOST_READINGS)
    for number, reading in enumerate(readings):
        if number % step == 0 or number == len(readings) - 1:
            yield reading


def _counts(reading: EnvReading) -> dict[str, int]:
    return {
        str(what.value if hasattr(what, "value") else what): number
        for what, number in reading.counts.items()
    }


def _reading(reading: EnvReading) -> tuple[str, ...]:
    counts = _counts(reading)
    return (
        f"{reading.frame:,}",
        f"{reading.episode:,}",
        format_bytes(reading.whole),
        f"{counts['Python objects']:,}" if "Python objects" in counts else "",
        f"{counts.get('malloc', 0):,}",
        f"{counts.get('threads', 0):,}",
        f"{counts.get('file descriptors', 0):,}",
    )


def _reading_json(reading: EnvReading) -> dict[str, Any]:
    return {
        **picked(
            reading,
            *("frame", "episode", "ended", "collected", "leg"),
            pss_bytes="whole",
            held_bytes="held",
            malloc_free_bytes="free",
        ),
        "in_use": _counts(reading),
    }


def _whole(value: float | None) -> int | None:
    return None if value is None else max(0, round(value))


def _bytes(value: float) -> str:
    return format_bytes(round(value))


def _short(where: str) -> str:
    """A place in a file by its last two parts."""
    return "/".join(where.split("/")[-2:])
