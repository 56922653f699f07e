"""`python -m memfit.systems.fighter`: train a fighter, and say what it took."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from memfit.errors import TargetFailed, UsageError
from memfit.systems.fighter.cartridge import read_addresses, read_cartridge
from memfit.systems.fighter.settings import TOTAL_TIMESTEPS, Game, Settings
from memfit.systems.options import parser_of, settings_from
from memfit.systems.program import Progress, device_of, ended, say
from memfit.tracking import peak_bytes, peaks_below
from memfit.units import format_bytes

DESCRIPTION = """\
Train a fighter in a Game Boy game: PPO of stable-baselines3 on four stacked frames of an emulator,
one emulator a process. Made to fit by default: each frame is stored once, minibatches go through
the network in pieces, and workers load no torch. --as-described trains the way that a hand-made
memory assessment describes. The game comes with memfit; --rom takes one of your own.
"""
EXAMPLES = """\
examples:
  python -m memfit.systems.fighter --n-steps 512 --batch-size 256 --steps 10240
  python -m memfit.systems.fighter --n-steps 512 --batch-size 256 --steps 2048 --as-described
  python -m memfit.systems.fighter --frames half --n-steps 256 --batch-size 256 --epochs 4 \\
      --steps 60000 --output trained
  python -m memfit.systems.fighter --rom game.gb --addresses game.toml --state fight.state

A rollout has n-envs x n-steps samples, and there are as many rollouts as the steps need. Iterations
are printed on standard output, progress on standard error. Ctrl-C ends the training and its
workers. Nothing is written but to --output.
"""


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = parser_of("fighter", DESCRIPTION, EXAMPLES, {}, Game, Settings)
    add = parser.add_mutually_exclusive_group().add_argument
    add("--steps", type=int, default=TOTAL_TIMESTEPS, help="timesteps of all envs (%(default)s)")
    add("--iterations", type=int, help="rollouts, each then learned, in its place")
    return parser.parse_args(argv)


def settings_of(options: argparse.Namespace) -> Settings:
    """The settings that a command line asks for; what is wrong is found before anything starts."""
    read_cartridge(options.rom)
    game = settings_from(Game, options)
    settings = settings_from(
        Settings, options, game=game, steps=steps_of(options), device=device_of(options.device)
    )
    if game.rom is not None or game.state is not None:
        from memfit.systems.fighter.training import check_game

        check_game(game)
    if read_addresses(game.rom, game.addresses).reward is None:
        note = "no addresses of health are known for this ROM, so every reward is 0"
        say(f"note: {note}", aside=True)
    if settings.output is not None:
        try:
            settings.output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"cannot write to --output {settings.output}: {error.strerror}. Give a directory"
            ) from None
    return settings


def steps_of(options: argparse.Namespace) -> int:
    """Timesteps of the whole training."""
    if options.iterations is None:
        return int(options.steps)
    if options.iterations < 1:
        raise UsageError(f"--iterations is {options.iterations}: give 1 or more")
    return int(options.iterations * max(1, options.n_envs) * max(1, options.n_steps))


def run(options: argparse.Namespace) -> int:
    """Train, and print a line an iteration and what it took at the end."""
    settings = settings_of(options)
    progress = Progress(quiet=options.quiet)
    if options.as_described:
        from memfit.systems.fighter.described import Described as Training
    else:
        from memfit.systems.fighter.fitted import Fitted as Training  # type: ignore[assignment]
    training = Training(settings, progress)
    done, code = 0, 0
    try:
        for result in training.train():
            done = result.number
            returns = "no episode has ended"
            if result.mean_return is not None:
                returns = f"mean return {result.mean_return:+.3f}"
            if result.evaluated is not None:
                returns += f" ({result.evaluated:+.3f} evaluated)"
            say(
                f"iteration {result.number}: {result.steps:,} steps, {returns}, "
                f"reward {result.reward:+.2f} in 1,000 steps, {result.seconds:.1f} s"
            )
        if settings.output is not None:
            say(f"policy written to {settings.output / 'fighter.zip'}")
    except KeyboardInterrupt:
        say(f"stopped after {done} of {settings.iterations:,} iterations")
        code = 130
    except (EOFError, ConnectionError):  # as described; light workers say themselves how they end
        raise TargetFailed(
            "a worker ended in the middle of a game, perhaps for want of memory: "
            "give fewer --n-envs"
        ) from None
    finally:
        own, others = peak_bytes(), peaks_below()
        training.close()
    say(
        f"peak {format_bytes(own)} in the main process, beside {len(others)} others of "
        f"{format_bytes(max(others, default=0))} or less"
    )
    return code


def main(argv: Sequence[str] | None = None) -> int:
    """The program; its exit code."""
    return ended(run, arguments(argv))


if __name__ == "__main__":
    sys.exit(main())
