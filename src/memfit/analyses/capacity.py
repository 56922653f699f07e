"""The largest settings that fit a machine or a card, each exact and without trial runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from memfit.errors import UsageError
from memfit.formulas.device_rows import context_row, goes_to_card
from memfit.model import (
    Capacity,
    Ledger,
    Place,
)
from memfit.units import GIB, parse_bytes

MACHINE, DEVICE = "machine", "device"

# Names people know, by their nominal size; the memory that the system itself takes is not deducted.
HARDWARE: dict[str, tuple[int, str]] = {
    "laptop-8gb": (8 * GIB, MACHINE),
    "laptop-16gb": (16 * GIB, MACHINE),
    "laptop-24gb": (24 * GIB, MACHINE),
    "desktop-32gb": (32 * GIB, MACHINE),
    "workstation-64gb": (64 * GIB, MACHINE),
    "workstation-80gb": (80 * GIB, MACHINE),
    "server-128gb": (128 * GIB, MACHINE),
    "server-256gb": (256 * GIB, MACHINE),
    "rtx-3070": (8 * GIB, DEVICE),
    "rtx-4060": (8 * GIB, DEVICE),
    "rtx-3060": (12 * GIB, DEVICE),
    "rtx-4070": (12 * GIB, DEVICE),
    "rtx-4080": (16 * GIB, DEVICE),
    "rtx-5080": (16 * GIB, DEVICE),
    "t4": (16 * GIB, DEVICE),
    "v100-16gb": (16 * GIB, DEVICE),
    "rtx-3090": (24 * GIB, DEVICE),
    "rtx-4090": (24 * GIB, DEVICE),
    "l4": (24 * GIB, DEVICE),
    "a10": (24 * GIB, DEVICE),
    "rtx-5090": (32 * GIB, DEVICE),
    "v100-32gb": (32 * GIB, DEVICE),
    "a100-40gb": (40 * GIB, DEVICE),
    "l40s": (48 * GIB, DEVICE),
    "a100-80gb": (80 * GIB, DEVICE),
    "h100-80gb": (80 * GIB, DEVICE),
}
_DEFAULT = ("laptop-8gb", "laptop-16gb", "laptop-24gb", "desktop-32gb", "workstation-80gb")

# The knobs that people turn first, in this order; then the others, by name.
_FIRST = ("n_envs", "n_steps", "batch_size", "buffer_size")

_SEARCH_END = 2**40


class Hardware(NamedTuple):
    """A machine (its RAM) or a card (its own memory)."""

    name: str
    bytes: int
    place: str


def parse_hardware(text: str) -> Hardware:
    """A known name such as `rtx-4090`, or a plain size such as `24GiB` (a machine's RAM)."""
    name = text.strip().lower()
    if name in HARDWARE:
        return Hardware(name, *HARDWARE[name])
    try:
        amount = parse_bytes(text)
    except UsageError:
        amount = 0
    if amount <= 0:
        raise UsageError(
            f"{text!r} is no hardware that memfit knows. "
            f"Give a size such as 24GiB, or one of: {', '.join(HARDWARE)}"
        )
    return Hardware(text.strip(), amount, MACHINE)


def default_hardware() -> tuple[Hardware, ...]:
    """Machines with 8, 16, 24, 32 and 80 GB."""
    return tuple(Hardware(name, *HARDWARE[name]) for name in _DEFAULT)


def searched_knobs(ledger: Ledger) -> tuple[str, ...]:
    """The settings whose largest value is worth knowing, the best known first."""
    # The length of a run is no setting to enlarge until it fits.
    used = {name for c in ledger.components for name in c.size.knobs} - {ledger.length}
    first = [name for name in _FIRST if name in used]
    return (*first, *sorted(used.difference(first)))


def capacity(ledger: Ledger, hardware: Hardware, knobs: Sequence[str] | None = None) -> Capacity:
    """The largest value of each knob that fits this hardware with all other knobs as they are.

    `knobs` names the ones to search; without it, all that the ledger depends on.
    """
    seen = on_card(ledger) if hardware.place == DEVICE else on_machine(ledger)
    peak = seen.peak.bytes
    largest: dict[str, int | None] = {}
    for name in searched_knobs(ledger) if knobs is None else knobs:
        found = _largest(_fits(seen, name, hardware.bytes), ledger.knobs.get(name, 1))
        if found != 0:
            largest[name] = found
    return Capacity(
        hardware=hardware.name,
        bytes=hardware.bytes,
        place=hardware.place,
        peak_bytes=peak,
        fits=peak <= hardware.bytes,
        largest=largest,
    )


def on_machine(ledger: Ledger) -> Ledger:
    """What of a run is in a machine's RAM: all that is not on a card."""
    rows = tuple(c for c in ledger.components if c.place is not Place.DEVICE)
    return ledger.with_rows(rows)


def on_card(ledger: Ledger) -> Ledger:
    """What of a run is, or would be, on a card: networks, their training and the minibatch."""
    rows = tuple(c for c in ledger.components if goes_to_card(c))
    if any(c.place is Place.DEVICE for c in rows):
        return ledger.with_rows(rows)  # planned for a card: all of it is there
    return ledger.with_rows((context_row(ledger), *rows))


def _fits(ledger: Ledger, knob: str, limit: int) -> Callable[[int], bool]:
    evaluate, knobs = ledger.evaluator, dict(ledger.knobs)

    def fits(value: int) -> bool:
        knobs[knob] = value
        return max(evaluate(knobs).values(), default=0) <= limit

    return fits


def _largest(fits: Callable[[int], bool], now: int) -> int | None:
    """The value that fits while the next does not; 0 if none fits, None if no end is in sight."""
    fitting = now if now >= 1 and fits(now) else 1
    if not fits(fitting):
        return 0
    failing = fitting * 2
    while fits(failing):
        if failing >= _SEARCH_END:
            return None
        fitting, failing = failing, failing * 2
    while failing - fitting > 1:
        middle = (fitting + failing) // 2
        if fits(middle):
            fitting = middle
        else:
            failing = middle
    return fitting
