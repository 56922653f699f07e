"""The sizes at which a run would fill a machine: there too, its allocations are replayed.

What malloc keeps is no line in the size of a run. Blocks of up to 32 MiB leave holes in its heap,
larger ones have mappings of their own; so a line through two small sizes says nothing of a large
one. A replay touches no memory, and costs the same time at any size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from memfit.model import Replayed
from memfit.units import GIB

FILLED = (8 * GIB, 24 * GIB)
FEW_SEEDS = 2  # draws; a replay there is to tell a slope, not chance
# Sizes between these multiples of the run's own are told by its own replays, at once and twice.
_NEAR = (0.7, 2.5)
_MOST_TIMES = 2**14  # a run that takes next to nothing more is filled by something else

Growth = Mapping[str, int]


def replayed_where_filled(
    replay: Callable[[Mapping[str, int]], Growth],
    *,
    knobs: Mapping[str, int],
    larger: Mapping[str, int],
    warm: int,
    growth: tuple[Growth, Growth],
) -> list[Replayed]:
    """Replays with the knobs at which a run takes all there is, where that is far from its own.

    Beside `warm`, it takes `growth[0]` with `knobs`, and `growth[1]` with the `larger` ones, which
    make it twice as large. Each replay tells better where the next machine is full.
    """
    own, taken = (warm + max(one.values(), default=0) for one in growth)
    times, found = 2.0, []
    for filled in FILLED:
        # For once its own size; near it, malloc may keep so much less that a larger run takes less.
        more = max((taken - own) / (times - 1), (own - warm) / 2)
        wanted = 1 + (filled - own) / more if more > 0 else 0.0
        if not 0 < wanted <= _MOST_TIMES or _NEAR[0] <= wanted <= _NEAR[1]:
            continue
        there = {
            name: max(1, round(larger[name] * wanted / 2)) if larger[name] != value else value
            for name, value in knobs.items()
        }
        found.append(Replayed(knobs=there, growth=replay(there)))
        times, taken = wanted, warm + max(found[-1].growth.values(), default=0)
    return found
