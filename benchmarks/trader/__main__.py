"""Command line of the benchmark: ``python -m benchmarks.trader STAGE``."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.stages import keep, run_stage, say
from benchmarks.trader import table
from memfit.measure.children.measured_command import Measured, measure

RESULTS = Path(__file__).parent / "results"
GIB = 1 << 30
LIMIT = "512MiB"  # where a rollout that does not end is ended
SHORT = ["--iterations", 2, "--epochs", 2]  # the peak is there by then
SETTLED = [*SHORT, "--threads", 12, "--width", 768, "--batch", 4096, "--steps", 4096]


def trader(*options: object, codes: Sequence[int] = (0,)) -> Measured:
    """Run the trader in a process of its own and measure its tree from outside."""
    command = [sys.executable, "-m", "memfit.systems.trader", "--device", "cpu", "--quiet"]
    done = measure([*command, *map(str, options)], memory=12 * GIB, timeout=1800)
    if done.exit_code not in codes:
        raise SystemExit(f"{' '.join(map(str, options))}: {done.output}")
    return done


def result(done: Measured, **more: Any) -> dict[str, Any]:
    """What is kept of a run."""
    return {
        **more,
        "peak_bytes": done.peak_bytes,
        "seconds": round(done.seconds, 1),
        "said": done.output.strip().splitlines(),
    }


def peaks() -> None:
    """The assessment's configuration in both trainings, by workers and by threads."""
    found = []
    for training, flag in (("as described", ["--as-described"]), ("made to fit", [])):
        for workers, threads in ((3, 12), (0, 12), (0, 1)):
            say(f"{training}, {workers} workers, {threads} threads")
            options = [*flag, "--trials", 0, *SETTLED, "--workers", workers, "--threads", threads]
            found.append(
                result(trader(*options), training=training, workers=workers, threads=threads)
            )
    say("made to fit, at its own defaults")
    found.append(
        result(
            trader("--trials", 0, *SHORT),
            training="made to fit, its own defaults",
            workers=2,
            threads=2,
        )
    )
    keep(RESULTS, "peaks", found)


def growth() -> None:
    """An env that never says done: what a step adds as described, and made to fit."""
    say("an env that never says done, as described")
    options = ["--trials", 0, "--never-done", "--workers", 0]
    described = trader("--as-described", *options, "--limit", LIMIT, codes=(3,))
    grown = re.search(r"had ([\d,]+) steps and grew by ([\d,]+) bytes", described.output)
    if grown is None:
        raise SystemExit(described.output)
    steps, each = (int(text.replace(",", "")) for text in grown.groups())
    say("the same, made to fit")
    fitted = trader(*options, "--iterations", 30)
    keep(
        RESULTS,
        "growth",
        {
            "described": result(described, steps=steps, bytes_a_step=each),
            "fitted": result(fitted, steps=30 * 4096),
        },
    )


def threads() -> None:
    """What 12 threads reserve and what they hold, against one."""
    code = (
        "import os, sys, torch\n"
        "from memfit.measure.kernel import proc\n"
        "from memfit.tracking.side_by_side import memory_of\n"
        "torch.set_num_threads(int(sys.argv[1]))\n"
        "net = torch.nn.Linear(768, 768)\n"
        "for _ in range(3): net(torch.randn(4096, 768)).sum().backward()\n"
        "print(proc.threads(os.getpid()), proc.reserved(), memory_of(os.getpid()).private)\n"
    )
    found = {}
    for count in (1, 12):
        done = measure([sys.executable, "-c", code, str(count)], memory=4 * GIB, timeout=300)
        started, reserved, held = (int(word) for word in done.output.split())
        found[str(count)] = {"threads": started, "reserved": reserved, "held": held}
    keep(RESULTS, "threads", found)


def study() -> None:
    """A study as wide as the assessment's, in 1 GiB."""
    say("a study of 8 trials in 1 GiB")
    options = ["--trials", 8, "--limit", "1GiB", "--width", 768, "--batch", 4096]
    done = trader(*options, "--threads", 4, "--workers", 3, "--iterations", 4)
    keep(RESULTS, "study", result(done, limit_bytes=GIB))


def learning() -> None:
    """Whether it learns: held-out returns of a seeded training, and of random actions."""
    say("60 iterations")
    done = trader("--trials", 0, "--iterations", 60, "--seed", 0)
    keep(RESULTS, "learning", result(done, steps=60 * 4096, **others()))


def others() -> dict[str, float]:
    """Mean returns on the same held-out prices of random actions, and of buying and holding."""
    import numpy as np

    from memfit.systems.trader.fitted import mean_return
    from memfit.systems.trader.market import market_for
    from memfit.systems.trader.settings import ACTIONS, Settings

    market, draw = market_for(Settings()), np.random.default_rng(2)
    return {
        "random_return": mean_return(market, lambda p: draw.uniform(-1, 1, (p.count, ACTIONS))),
        "hold_return": mean_return(
            market, lambda p: np.full((p.count, ACTIONS), float(p.age[0] == 0))
        ),
    }


def main() -> None:
    """Run one stage."""
    stages = {
        "peaks": peaks,
        "growth": growth,
        "threads": threads,
        "study": study,
        "learning": learning,
    }
    run_stage("trader", __doc__, {**stages, "table": lambda: table.write(RESULTS)})


if __name__ == "__main__":
    main()
