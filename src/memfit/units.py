"""Read and write amounts of memory, and long names. Bytes are integers; people read MiB, GiB."""

from __future__ import annotations

import re

from memfit.errors import UsageError

KIB, MIB, GIB, TIB = 2**10, 2**20, 2**30, 2**40

_UNITS = {
    "": 1,
    "b": 1,
    "k": KIB,
    "kib": KIB,
    "m": MIB,
    "mib": MIB,
    "g": GIB,
    "gib": GIB,
    "t": TIB,
    "tib": TIB,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
}
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")


def parse_bytes(text: str) -> int:
    """`16GiB`, `16G`, `512 MiB`, `80GB` (decimal) or a plain number of bytes, as an integer."""
    match = _AMOUNT.fullmatch(text)
    unit = _UNITS.get(match.group(2).lower()) if match else None
    if match is None or unit is None:
        raise UsageError(
            f"{text!r} is not an amount of memory: "
            "write a number and a unit, such as 16GiB or 512MiB"
        )
    whole, _, decimals = match.group(1).partition(".")
    scale: int = 10 ** len(decimals)
    return int(whole + decimals) * unit // scale


def byte_ticks(top: int) -> list[int]:
    """About five round amounts from nothing up to a little beyond this, for an axis."""
    top += top // 24
    unit = next((unit for unit in (TIB, GIB, MIB, KIB) if top >= unit), 1)
    steps = [unit * step // 4 or 1 for step in (1, 2, 4, 8, 20, 40, 80, 200, 400, 800)]
    step = next((step for step in steps if top <= 5 * step), max(1, top // 4))
    return list(range(0, top + step, step))


def time_ticks(last: float) -> list[tuple[float, str]]:
    """About six round times from nothing up to these seconds, each with its words."""
    names = {1: "s", 60: "min", 3600: "h", 86400: "d"}
    steps = [n * unit for unit in names for n in (1, 2, 5, 10, 20, 30) if n < 30 or unit < 3600]
    step = next((step for step in steps if last <= 6 * step), max(1, int(last) // 6))
    unit = max(unit for unit in names if step % unit == 0 or unit == 1)
    return [(at, f"{at // unit} {names[unit]}") for at in range(0, int(last) + step, step)]


def format_change(value: int) -> str:
    """A change for people, with its sign: `+12.0 KiB`."""
    return f"+{format_bytes(value)}" if value > 0 else format_bytes(value)


def format_bytes(value: int) -> str:
    """A size for people: `0 B`, `12.0 KiB`, `317 MiB`, `4.22 GiB`."""
    sign, size = ("-", -value) if value < 0 else ("", value)
    if size < KIB:
        return f"{sign}{size} B"
    for unit, name in ((TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size >= unit:
            amount = size / unit
            digits = 2 if amount < 10 else 1 if amount < 100 else 0
            return f"{sign}{amount:.{digits}f} {name}"
    raise AssertionError("unreachable")


def shortened(text: str, most: int) -> str:
    """A long name without its middle: its beginning and its end tell most."""
    if len(text) <= most:
        return text
    end = (most - 1) * 2 // 3
    return f"{text[: most - 1 - end]}…{text[-end:]}"
