"""What held a card's memory, as blocks and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from memfit.model.device_explanation import (
    DeviceExplanation,
    HeldPart,
    HeldStack,
    OtherSettings,
    SnapshotExplanation,
)
from memfit.render.blocks import (
    Block,
    Heading,
    Text,
    Tone,
    bars,
    muted,
    names,
    numbers,
    section,
)
from memfit.render.result_json import SCHEMA, picked
from memfit.units import format_bytes, shortened

_STACKS = 12
_BARS = 20
_NAME = 70


def snapshot_blocks(found: SnapshotExplanation) -> list[Block]:
    """Card by card: what was held, why it was not more, and what would have helped."""
    return [block for device in found.devices for block in _device(device)]


def every_snapshot_block(found: SnapshotExplanation) -> list[Block]:
    """The same with every place of the program."""
    return [block for device in found.devices for block in _device(device, every=True)]


def _device(of: DeviceExplanation, *, every: bool = False) -> list[Block]:
    blocks: list[Block] = [Text(_first_line(of), Tone.BAD if of.ran_out else Tone.PLAIN)]
    if of.ran_out is not None:
        asked, free = format_bytes(of.ran_out.asked), format_bytes(of.ran_out.free)
        blocks.append(Text(f"{asked} were asked for, and the driver had {free}", Tone.BAD))
        blocks.append(Text(_avoided(of.others), Tone.GOOD if _helping(of.others) else Tone.PLAIN))
    blocks += section(
        "Reserved memory", ("part", *numbers("bytes", "share"), "what it is"), _use(of)
    )
    blocks += _held("By phase", "phase", of, of.phases)
    blocks += _held("By size", "size", of, of.sizes)
    stacks = of.stacks if every else of.stacks[:_STACKS]
    blocks += _held("By place in the program", "place", of, stacks)
    if left := len(of.stacks) - len(stacks):
        blocks += muted([f"and {left:,} places that hold less: memfit explain --all"])
    if of.timeline and of.events:
        blocks += _timeline(of)
    if of.others:
        settings = (names("PYTORCH_CUDA_ALLOC_CONF"), *numbers("reserved at most"), "fits")
        rows = [(o.settings, format_bytes(o.peak_reserved), _fits(o)) for o in of.others]
        blocks += section("The same requests under other settings, by simulation", settings, rows)
    return blocks + muted(f"note: {note}" for note in of.notes)


def _first_line(of: DeviceExplanation) -> str:
    text = (
        f"cuda:{of.device} {of.moment}: {format_bytes(of.allocated)} allocated of "
        f"{format_bytes(of.reserved)} reserved in {of.segments:,} segments; "
        f"{of.split_share:.1%} lost to fragmentation"
    )
    return f"{text}; event {of.at_event:,} of {of.events:,}" if of.events else text


def _use(of: DeviceExplanation) -> list[tuple[str, ...]]:
    parts = (
        ("allocated", of.allocated, "blocks of tensors"),
        ("of it rounding", of.rounding, "more than was asked for: sizes are rounded up"),
        ("waiting", of.waiting, "freed, but another stream still works on it"),
        ("inactive split", of.split, "free between blocks in use: cannot be given back"),
        ("cached", of.cached, "segments that nothing uses: given back before memory runs out"),
        ("largest free block", of.largest_free, "a larger request needs a new segment"),
    )
    return [
        (name, format_bytes(amount), _share(amount, of), what)
        for name, amount, what in parts
        if amount
    ]


def _held(
    title: str, column: str, of: DeviceExplanation, parts: Iterable[HeldPart | HeldStack]
) -> list[Block]:
    rows = [
        (shortened(p.name, _NAME), format_bytes(p.bytes), _share(p.bytes, of), f"{p.blocks:,}")
        for p in parts
    ]
    return (
        section(title, (names(column), *numbers("bytes", "share", "blocks")), rows) if rows else []
    )


def _share(amount: int, of: DeviceExplanation) -> str:
    return f"{amount / of.reserved:.1%}" if of.reserved else ""


def _timeline(of: DeviceExplanation) -> list[Block]:
    step = -(-len(of.timeline) // _BARS)
    shown = [
        max(of.timeline[n : n + step], key=lambda m: (m.event == of.at_event, m.allocated))
        for n in range(0, len(of.timeline), step)
    ]
    peaks = [n for n, m in enumerate(shown) if m.event == of.at_event and not of.ran_out]
    amounts = [(f"event {moment.event:,}", moment.allocated) for moment in shown]
    return [
        Heading("Allocated over the history"),
        bars(amounts, peaks, picture=f"card-{of.device}-history"),
    ]


def _helping(others: Iterable[OtherSettings]) -> list[str]:
    return [other.settings for other in others if other.fits and ":" in other.settings]


def _avoided(others: tuple[OtherSettings, ...]) -> str:
    if helping := _helping(others):
        return f"{' or '.join(helping)} would have avoided it, by simulation"
    if not others:
        return "no history was recorded, so that other settings cannot be tried"
    return "no setting of the allocator that was tried would have avoided it: less must be held"


def _fits(other: OtherSettings) -> str:
    return "" if other.fits is None else "yes" if other.fits else "no"


def snapshot_json(found: SnapshotExplanation) -> dict[str, Any]:
    """What `memfit explain snapshot.pickle --format json` prints."""
    return {
        "schema": SCHEMA,
        "kind": "explain",
        "snapshot": found.path,
        "devices": [_device_json(device) for device in found.devices],
        "seconds": round(found.seconds, 3),
    }


def _device_json(of: DeviceExplanation) -> dict[str, Any]:
    parts = ("name", "blocks")
    data = picked(of, "device", "moment", "at_event", "events", "segments")
    data |= picked(
        of,
        peak_allocated_bytes="peak_allocated",
        peak_reserved_bytes="peak_reserved",
        allocated_bytes="allocated",
        rounding_bytes="rounding",
        waiting_bytes="waiting",
        reserved_bytes="reserved",
        inactive_split_bytes="split",
        cached_bytes="cached",
        largest_free_bytes="largest_free",
        unattributed_bytes="unattributed_bytes",
    )
    data["fragmentation"] = round(of.split_share, 6)
    data["phases"] = {part.name: part.bytes for part in of.phases}
    data["sizes"] = [picked(part, *parts, bytes="bytes") for part in of.sizes]
    data["stacks"] = [picked(part, *parts, "stack", bytes="bytes") for part in of.stacks]
    data["timeline"] = [
        picked(m, "event", allocated_bytes="allocated", reserved_bytes="reserved")
        for m in of.timeline
    ]
    ran_out = of.ran_out
    data["out_of_memory"] = (
        None if ran_out is None else picked(ran_out, asked_bytes="asked", free_bytes="free")
    )
    data["what_if"] = [
        picked(o, "settings", "fits", peak_reserved_bytes="peak_reserved") for o in of.others
    ]
    data["notes"] = list(of.notes)
    return data
