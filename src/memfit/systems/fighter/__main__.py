"""`python -m memfit.systems.fighter`: train a fighter, and say what it took."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from memfit.errors import TargetFailed, UsageError
from memfit.systems.fighter.cartridge import read_addresses, read_cartridge
from memfit.systems.fighter.settings import (
    BATCH_SIZE,
    FRAMES,
    SAVE_FREQ,
    Game,
    Settings,
    at_least_one,
)
from memfit.systems.program import Progress, device_of, ended, say, say_aside
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
    default = Settings()
    parser = argparse.ArgumentParser(
        prog="python -m memfit.systems.fighter",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--rom", type=Path, metavar="FILE", help="a Game Boy ROM of your own")
    add("--addresses", type=Path, metavar="FILE", help="where its memory has health: a TOML file")
    add("--state", type=Path, metavar="FILE", help="PyBoy's savestate that its fights begin with")
    add(
        "--n-envs", type=int, default=default.n_envs, help="emulators, a process each (%(default)s)"
    )
    add("--n-steps", type=int, default=default.n_steps, help="of a rollout, an env (%(default)s)")
    add("--batch-size", type=int, help=f"samples of one gradient step ({BATCH_SIZE})")
    add(
        "--micro-batch",
        type=int,
        default=default.micro_batch,
        help="samples that go through the network at once (%(default)s); not as described",
    )
    add(
        "--epochs",
        type=int,
        default=default.n_epochs,
        help="times a sample is learned (%(default)s)",
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument(
        "--steps", type=int, default=default.steps, help="timesteps of all envs (%(default)s)"
    )
    length.add_argument("--iterations", type=int, help="rollouts, each then learned, in its place")
    add("--learning-rate", type=float, default=default.learning_rate)
    add(
        "--entropy", type=float, default=default.entropy, help="weight of the entropy (%(default)s)"
    )
    add(
        "--frames",
        default=default.game.frames,
        metavar="|".join(FRAMES),
        help="what is seen; grey has one channel, half a quarter of its pixels: another problem",
    )
    add("--frame-skip", type=int, default=default.game.frame_skip, help="frames of one action")
    add(
        "--episode-steps",
        type=int,
        default=default.game.episode_steps,
        help="after which an episode is cut off, if no match ends it before (%(default)s)",
    )
    add(
        "--storage",
        default=default.storage,
        metavar="frames|stacks",
        help="store each frame once, or every stack whole; not as described",
    )
    add("--eval-every", type=int, metavar="ROLLOUTS", help="evaluate, on an env of its own")
    add("--output", type=Path, metavar="DIR", help="for checkpoints and the trained policy")
    add(
        "--save-every",
        type=int,
        default=SAVE_FREQ,
        help="vector steps to a checkpoint (%(default)s)",
    )
    add("--seed", type=int, default=0)
    add("--device", default="auto", help="cpu, cuda, or auto: a device where there is one")
    add("--as-described", action="store_true", help="with all the waste of the assessment")
    add("--quiet", action="store_true", help="no progress on standard error")
    return parser.parse_args(argv)


def settings_of(options: argparse.Namespace) -> Settings:
    """The settings that a command line asks for; what is wrong is found before anything starts."""
    read_cartridge(options.rom)
    game = Game(
        rom=options.rom,
        addresses=options.addresses,
        state=options.state,
        frames=options.frames,
        frame_skip=options.frame_skip,
        episode_steps=options.episode_steps,
    )
    settings = Settings(
        game=game,
        n_envs=options.n_envs,
        n_steps=options.n_steps,
        batch_size=options.batch_size,
        micro_batch=options.micro_batch,
        n_epochs=options.epochs,
        steps=steps_of(options),
        learning_rate=options.learning_rate,
        entropy=options.entropy,
        seed=options.seed,
        device=device_of(options.device),
        storage=options.storage,
        output=options.output,
        save_every=options.save_every,
        eval_every=options.eval_every,
    )
    if game.rom is not None or game.state is not None:
        from memfit.systems.fighter.training import check_game

        check_game(game)
    if read_addresses(game.rom, game.addresses).reward is None:
        say_aside("note: no addresses of health are known for this ROM, so every reward is 0")
    if settings.output is not None:
        make_directory(settings.output)
    return settings


def steps_of(options: argparse.Namespace) -> int:
    """Timesteps of the whole training."""
    if options.iterations is None:
        return int(options.steps)
    at_least_one("iterations", options.iterations)
    return int(options.iterations * max(1, options.n_envs) * max(1, options.n_steps))


def make_directory(directory: Path) -> None:
    """Make the directory of the output, if it is not there."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"cannot write to --output {directory}: {error.strerror}. Give a directory"
        ) from None


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
    options = arguments(argv)
    return ended(lambda: run(options))


if __name__ == "__main__":
    sys.exit(main())
