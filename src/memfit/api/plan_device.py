"""`plan --device cuda`: the ledger in two, and what of it fits a card."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memfit.analyses.capacity import DEVICE, HARDWARE, Hardware
from memfit.api.surveyed import Surveyed
from memfit.errors import Unsupported, UsageError
from memfit.formulas.array_bytes import width
from memfit.formulas.device_rows import CUDA_CONTEXT, card_ledger, host_ledger
from memfit.model import DevicePlan, Ledger

DEVICES = ("cpu", "cuda")
_WELL_MATCHED = 0.95


def check_device(device: str, hardware: Sequence[Hardware], *, probe: bool) -> Hardware | None:
    """The card to plan for: the first that is named; none where the run trains on the CPU."""
    kind = device.partition(":")[0]
    if kind not in DEVICES:
        raise UsageError(
            f"{device!r} is no device that memfit can plan for: use one of {', '.join(DEVICES)}"
        )
    if kind == "cpu":
        return None
    card = next((one for one in hardware if one.place == DEVICE), None)
    if card is None:
        known = ", ".join(name for name, (_, place) in HARDWARE.items() if place == DEVICE)
        raise UsageError(f"--device cuda needs a card: name it with --on, as one of: {known}")
    if probe:
        raise UsageError(
            "--probe rehearses on the CPU, which says nothing of a card: leave out --probe or "
            "--device"
        )
    return card


def for_card(found: Surveyed, ledger: Ledger, card: Hardware) -> tuple[Ledger, DevicePlan]:
    """The machine's ledger, and the card's."""
    spec, reading = found.spec, found.readings.device
    if found.readings.trial is not None:
        raise Unsupported(
            "a loop of its own is tried as it is, on the CPU, and its tensors are not recorded: "
            "--device plans runs of stable-baselines3 and skrl, and torch models. Leave it out"
        )
    if reading is None:
        raise Unsupported(
            "no small update of this run could be done here, so that nothing is known of what it "
            "would ask of a card: see the notes of the plan without --device"
        )
    on_card = card_ledger(spec, found.readings, ledger)
    reserved = on_card.peak.bytes - CUDA_CONTEXT
    samples = width(spec).evaluate(ledger.knobs)
    arrays = sum(
        on_card.bytes_of(c)
        for c in on_card.components
        if c.name in {a.name for a in spec.arrays} and c.alive_in(spec.update.moment)
    )
    return host_ledger(spec, ledger), DevicePlan(
        name=card.name,
        bytes=card.bytes,
        ledger=on_card,
        peak_allocated=min(reserved, reading.allocated.at(samples) + arrays),
        peak_reserved=reserved,
        other_settings={n: bytes_ + arrays for n, bytes_ in reading.other_settings.items()},
    )


def device_notes(found: Surveyed) -> Iterator[str]:
    """What a plan for a card does not know."""
    reading = found.readings.device
    if reading is None:
        return
    yield (
        "on the card: cuDNN's workspaces, and what kernels of the card take for themselves, are in "
        "no row; the context and CUDA's libraries in the process are assumed. No card has run this"
    )
    if reading.matched_share < _WELL_MATCHED:
        yield (
            f"of the tensors' bytes, {reading.matched_share:.0%} grow with the batch in a way that "
            "two small updates show; the rest is taken as it is"
        )
