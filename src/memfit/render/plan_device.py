"""What a run needs on a card, as a part of a plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memfit.model import DevicePlan, Plan
from memfit.render.blocks import Block, Text, Tone, muted, names, numbers, section
from memfit.units import format_bytes


def card_blocks(plan: Plan) -> Iterator[Block]:
    """The verdict of the card, its rows at the peak, and other settings of its allocator."""
    card = plan.device
    if card is None:
        return
    yield Text(_verdict(card), Tone.GOOD if card.fits else Tone.BAD)
    ledger, moment = card.ledger, card.ledger.peak.moment
    alive = [c for c in ledger.components if c.alive_in(moment)]
    alive.sort(key=lambda c: -ledger.bytes_of(c))
    rows = (
        (
            c.name,
            format_bytes(ledger.bytes_of(c)),
            "fixed" if c.size.is_const else str(c.size),
            str(c.evidence),
        )
        for c in alive
    )
    yield from section(
        f"On the card at its peak, in {moment}",
        (names("component"), *numbers("bytes"), names("formula", whole=False), "evidence"),
        rows,
        total=("total", format_bytes(card.peak_bytes), "", ""),
    )
    told = ", ".join(f"{n} {format_bytes(bytes_)}" for n, bytes_ in card.other_settings.items())
    if told:
        yield from muted([f"with PYTORCH_CUDA_ALLOC_CONF, reserved by simulation: {told}"])


def _verdict(card: DevicePlan) -> str:
    fits = "Fits" if card.fits else "Does not fit"
    return (
        f"{fits} on {card.name}: {format_bytes(card.peak_bytes)} of {format_bytes(card.bytes)}, as "
        f"nvidia-smi would show it; at most {format_bytes(card.peak_allocated)} allocated and "
        f"{format_bytes(card.peak_reserved)} reserved"
    )


def card_json(card: DevicePlan) -> dict[str, Any]:
    """The key `device` of a plan."""
    return {
        "name": card.name,
        "bytes": card.bytes,
        "peak_allocated_bytes": card.peak_allocated,
        "peak_reserved_bytes": card.peak_reserved,
        "total_bytes": card.peak_bytes,
        "fits": card.fits,
        "peak_moment": card.ledger.peak.moment,
        "what_if": {name: {"peak_reserved_bytes": n} for name, n in card.other_settings.items()},
    }
