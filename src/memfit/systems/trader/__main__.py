"""`python -m memfit.systems.trader`: train the trader or tune it, and say what it took."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from memfit.errors import UsageError
from memfit.systems.options import parse, parser_of, settings_from
from memfit.systems.program import ended, say
from memfit.systems.trader.settings import DESCRIBED, Settings
from memfit.units import parse_bytes

DESCRIPTION = """\
Train an agent to trade 7 coins, by PPO, on a synthetic market or on your own prices. Made to fit
by default: an Optuna study over width, batch, threads and workers that stays within --limit, runs
as many trials side by side as fit by plan, and stores on each trial that it prunes why. In a study
--width, --batch, --threads and --workers are the largest that a trial may have. --trials 0 or 1
trains once with exactly these. --as-described trains the way that a hand-made memory assessment
describes: 12 threads, 3 workers, width 768, target networks, and rollouts that end only where the
env says done.
"""
EXAMPLES = """\
examples:
  python -m memfit.systems.trader --trials 8 --width 512 --limit 2GiB
  python -m memfit.systems.trader --trials 0 --iterations 60
  python -m memfit.systems.trader --trials 0 --as-described --iterations 2
  python -m memfit.systems.trader --trials 0 --as-described --never-done --limit 2GiB
  python -m memfit.systems.trader --trials 4 --never-done
  python -m memfit.systems.trader --trials 0 --prices prices.csv

A prices file is a CSV or Parquet file with a header, one column for each of 7 coins and one row
for each step; columns named time, date or timestamp are left out.
"""
MARGIN = 0.1  # of the machine's memory: left free where no limit is given


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = parser_of("trader", DESCRIPTION, EXAMPLES, DESCRIBED, Settings)
    add = parser.add_argument
    add("--trials", type=int, default=4, metavar="K", help="trials of the study; 0 or 1: no study")
    add("--limit", metavar="SIZE", help="memory, such as 2GiB (what the machine has, less 10 %%)")
    add("--side-by-side", type=int, metavar="N", help="at most so many trials at a time")
    add("--max-seconds", type=float, metavar="S", help="end after so many seconds")
    add("--prices", type=Path, metavar="FILE", help="your own prices instead of synthetic ones")
    return parse(parser, argv, DESCRIBED)


def settings_of(options: argparse.Namespace) -> Settings:
    """The settings that a command line asks for."""
    if options.as_described and options.envs != 1:
        raise UsageError("--as-described has one portfolio a worker: leave out --envs")
    prices = str(options.prices.absolute()) if options.prices else ""
    return settings_from(Settings, options, prices=prices)


def check(options: argparse.Namespace) -> int:
    """Refuse what cannot work; the limit in bytes."""
    from memfit.tracking.guard import usable_bytes

    if options.trials < 0:
        raise UsageError(f"--trials is {options.trials}: give 0 or more")
    if options.side_by_side is not None and options.side_by_side < 1:
        raise UsageError(f"--side-by-side is {options.side_by_side}: give 1 or more")
    if options.max_seconds is not None and not options.max_seconds > 0:
        raise UsageError(f"--max-seconds is {options.max_seconds}: give more than 0")
    if options.limit is None:
        return int(usable_bytes() * (1 - MARGIN))
    limit = parse_bytes(options.limit)
    if limit < 1:
        raise UsageError("--limit is 0: give an amount such as 2GiB")
    return limit


def tune(settings: Settings, options: argparse.Namespace, limit: int) -> int:
    """The study: progress on standard error, its table on standard output."""
    from memfit.systems.trader.study import Study
    from memfit.systems.trader.table import lines

    def progress(text: str) -> None:
        if not options.quiet:
            say(text, aside=True)

    with TemporaryDirectory(prefix="memfit-trader-") as folder:
        study = Study(
            settings,
            limit=limit,
            folder=Path(folder),
            side_by_side=options.side_by_side,
            say=progress,
        )
        try:
            study.run(options.trials, options.max_seconds)
        except KeyboardInterrupt:
            say("stopped: all trials have been ended")
            return 130
        for line in lines(study):
            say(line)
    return 0


def run(options: argparse.Namespace) -> int:
    """Train once, or tune."""
    limit = check(options)
    settings = settings_of(options)
    if settings.prices:  # refused before a process is started for it
        from memfit.systems.trader.market import market_for

        market_for(settings)
    if options.trials > 1 and not options.as_described:
        return tune(settings, options, limit)
    from memfit.systems.trader.once import train

    return train(settings, options, limit)


def main(argv: Sequence[str] | None = None) -> int:
    """The program; its exit code."""
    return ended(run, arguments(argv))


if __name__ == "__main__":
    sys.exit(main())
