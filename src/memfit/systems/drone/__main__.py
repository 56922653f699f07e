"""`python -m memfit.systems.drone`: train the drones, and say what it took."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from memfit.systems.drone.settings import EPISODE, STORAGE, Settings
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
    default = Settings()
    parser = argparse.ArgumentParser(
        prog="python -m memfit.systems.drone",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--agents", type=int, default=default.agents, help="drones, all in one process")
    add("--iterations", type=int, default=default.iterations, help="rollouts, each then learned")
    add("--history", type=int, default=default.history, help="samples that a drone remembers")
    add("--every", type=int, default=1, help="keep every how-many-th sample of the history")
    add("--storage", metavar="|".join(STORAGE[:2]), help="what samples are stored in (int16)")
    add("--minibatch", type=int, default=default.minibatch, help="samples of one gradient step")
    add("--epochs", type=int, default=default.epochs, help="times that each sample is learned")
    add("--max-minibatches", type=int, help="at most so many an iteration: less work, same memory")
    add("--act-every", type=int, default=1, help="ask the policy only every how-many-th step")
    add("--learning-rate", type=float, default=default.learning_rate)
    add("--seed", type=int, default=0)
    add("--device", default="auto", help="cpu, cuda, or auto: a device where there is one")
    add("--as-described", action="store_true", help="with all the waste of the assessments")
    add("--plot", type=Path, metavar="FILE", help="a picture of returns and of flown paths")
    add("--quiet", action="store_true", help="no progress on standard error")
    return parser.parse_args(argv)


def settings_of(options: argparse.Namespace) -> Settings:
    """The settings that a command line asks for."""
    usual = "float32" if options.as_described else Settings().storage
    return Settings(
        agents=options.agents,
        iterations=options.iterations,
        history=options.history,
        every=options.every,
        storage=options.storage or usual,
        minibatch=options.minibatch,
        epochs=options.epochs,
        max_minibatches=options.max_minibatches,
        act_every=options.act_every,
        learning_rate=options.learning_rate,
        seed=options.seed,
        device=device_of(options.device),
        paths=8 if options.plot else 0,
    )


def run(options: argparse.Namespace) -> int:
    """Train, and print a line an iteration and what it took at the end."""
    settings = settings_of(options)
    if options.plot:
        from memfit.systems.drone.plot import check_plot

        check_plot(options.plot)
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
    options = arguments(argv)
    return ended(lambda: run(options))


if __name__ == "__main__":
    sys.exit(main())
