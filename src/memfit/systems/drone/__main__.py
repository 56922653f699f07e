"""`python -m memfit.systems.drone`: train the drones, and say what it took."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from memfit.errors import UsageError
from memfit.systems.drone.settings import DESCRIBED, EPISODE, Settings
from memfit.systems.options import parse, parser_of, settings_from
from memfit.systems.program import Progress, device_of, ended, say
from memfit.tracking import peak_bytes
from memfit.units import format_bytes

DESCRIPTION = """\
Train drones to fly to their targets by their inertial sensors alone: PPO on the code of an
autoencoder over the last 3 seconds of readings. Made to fit by default: each reading is stored
once, in the 16 bits that the sensor has. --as-described trains the way that two hand-made memory
assessments describe, at about 19 MiB an agent.
"""
EXAMPLES = """\
examples:
  python -m memfit.systems.drone --agents 256 --iterations 40 --plot flights.png
  python -m memfit.systems.drone --agents 100 --iterations 2 --as-described
  python -m memfit.systems.drone --agents 1000000 --iterations 1 --act-every 10 \\
      --max-minibatches 200
"""


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = parser_of("drone", DESCRIPTION, EXAMPLES, DESCRIBED, Settings)
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="a picture of returns and of flown paths"
    )
    return parse(parser, argv, DESCRIBED)


def run(options: argparse.Namespace) -> int:
    """Train, and print a line an iteration and what it took at the end."""
    settings = settings_from(
        Settings, options, device=device_of(options.device), paths=8 if options.plot else 0
    )
    if options.plot:
        from memfit.systems.drone.plot import check_plot

        check_plot(options.plot)
    if settings.first_fix and not options.as_described:
        raise UsageError("--first-fix changes the training as described: add --as-described")
    progress = Progress(quiet=options.quiet)
    if options.as_described:
        from memfit.systems.drone.described import Described as Training
    else:
        from memfit.systems.drone.fitted import Fitted as Training  # type: ignore[assignment]
    returns: list[float] = []
    code = 0
    training = Training(settings, progress)
    try:
        for result in training.train():
            returns.append(result.mean_return)
            say(
                f"iteration {result.number}: mean return {result.mean_return:+.2f} m, "
                f"losses {result.rl_loss:.3f} (acting) {result.memory_loss:.3f} (memory), "
                f"{result.minibatches} minibatches, {result.seconds:.1f} s"
            )
    except KeyboardInterrupt:
        say(f"stopped after {len(returns)} of {settings.iterations} iterations")
        code = 130
    if options.plot and returns:
        from memfit.systems.drone.plot import draw

        draw(options.plot, returns, training.paths)
        say(f"picture written to {options.plot}")
    say(f"peak {format_bytes(peak_bytes())} with {settings.agents:,} agents of {EPISODE} steps")
    return code


def main(argv: Sequence[str] | None = None) -> int:
    """The program; its exit code."""
    return ended(run, arguments(argv))


if __name__ == "__main__":
    sys.exit(main())
