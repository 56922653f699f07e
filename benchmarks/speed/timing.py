"""Times that can be compared: the processor's, taken in turns.

Other work on the machine then counts little, and for all alike.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping


def in_turns(work: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds of the processor, all threads, for each piece of work in every round."""
    seconds: dict[str, list[float]] = {name: [] for name in work}
    names = list(work)
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            began = time.process_time()
            work[name]()
            seconds[name].append(time.process_time() - began)
    return seconds


def against(seconds: Mapping[str, list[float]], base: str) -> dict[str, dict[str, float]]:
    """For each: the median, the least, and the ratios of both to those of `base`.

    The least of many rounds is what the work itself takes; the median is what other work on the
    machine made of it.
    """
    found = {}
    for name, taken in seconds.items():
        found[name] = {
            "median_ms": statistics.median(taken) * 1e3,
            "least_ms": min(taken) * 1e3,
            "ratio": statistics.median(taken) / statistics.median(seconds[base]),
            "least_ratio": min(taken) / min(seconds[base]),
        }
    return found
