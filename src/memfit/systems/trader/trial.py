"""One trial in a process of its own: `python -m memfit.systems.trader.trial`, by the study.

It reads its settings and its share of the memory as JSON from standard input and answers in lines
of JSON on standard output, one an iteration and one at the end.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from memfit.dropins.settings import give_back_large_blocks
from memfit.errors import UsageError
from memfit.systems.program import device_of
from memfit.systems.trader.market import Market, market_of, synthetic
from memfit.systems.trader.rollout import Collector
from memfit.systems.trader.settings import Settings
from memfit.tracking.guard import refuse_beyond
from memfit.tracking.side_by_side import end_with_parent, held, tree

RESERVED = 64 << 20  # that libraries reserve beside stacks, and do not touch: measured, rounded up


def market_for(settings: Settings) -> Market:
    """The market that the settings ask for: a user's file, or the synthetic one."""
    if settings.prices:
        from memfit.systems.trader.price_file import read_prices

        return market_of(read_prices(Path(settings.prices)), settings.lookback)
    return market_of(synthetic(settings.rows, settings.seed), settings.lookback)


def allow(share: int, threads: int) -> None:
    """Have the kernel refuse this process what is beyond its share, before it is touched.

    The kernel counts writable memory as it is reserved: the stacks of torch's threads, of which
    there are two pools, and more that libraries reserve and hardly use are allowed on top. What
    comes to be used of these the study sees, and stops.
    """
    stack = resource.getrlimit(resource.RLIMIT_STACK)[0]
    if stack == resource.RLIM_INFINITY or stack > 8 << 20:
        stack = 8 << 20
    here = held(tree(os.getpid())).private
    refuse_beyond(max(0, share - here) + 2 * threads * stack + RESERVED)


def answer(**fields: Any) -> None:
    """Write one line."""
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory was refused."""
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError | OSError)
        and any(text in str(error) for text in ("allocate memory", "not enough memory"))
    )


def run(job: dict[str, Any]) -> None:
    """Train, judge, and answer."""
    settings = Settings(**job["settings"])
    give_back_large_blocks()
    market = market_for(settings)
    collector = Collector(settings, market)  # before torch is loaded
    try:
        from memfit.systems.trader.fitted import Fitted

        settings = replace(settings, device=device_of(settings.device))
        if job["share"]:
            allow(job["share"] - collector.buffers.bytes, settings.threads)
        training = Fitted(settings, market, collector)
        cut = 0
        for result in training.train():
            cut += result.cut
            answer(iteration=result.number, mean_return=result.mean_return, cut=cut)
        answer(score=training.judge(), cut=cut)
    finally:
        collector.close()


def main() -> int:
    """The program; its exit code."""
    job = json.loads(sys.stdin.readline())
    end_with_parent(job["parent"])
    try:
        run(job)
    except UsageError as error:
        answer(failed=str(error))
        return 2
    except Exception as error:  # noqa: BLE001 - whatever went wrong is the trial's answer
        if out_of_memory(error):
            answer(refused=True)
            return 3
        answer(failed=f"{type(error).__name__}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
