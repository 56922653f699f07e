"""`python -m memfit.systems.ninja`: train the ninja, or profile its environment."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memfit.errors import UsageError
from memfit.model.json_loader import to_json
from memfit.systems.ninja.settings import EnvironmentConfig, Memory, TrainingSettings
from memfit.systems.options import parser_of, settings_from
from memfit.systems.program import Progress, device_of, ended, say
from memfit.tracking import peak_bytes
from memfit.units import format_bytes

if TYPE_CHECKING:
    from memfit.systems.ninja.training import Rollout

REPORT, STATS = "memory_profiling_report.txt", "profiling_stats.txt"
TARGET = "memfit.systems.ninja.env:configured"
LEAKS = 4  # the exit code of `memfit profile` for a leak
QUIET = ("--quiet",)
DESCRIPTION = """\
Train a ninja to reach a switch, then the exit, past mines: PPO of stable-baselines3 on two
pictures and some numbers. It is always headless: no window is opened and no sound is made. Made
to fit by default: levels, graphs and spaces belong to all environments, and only what is seen is
drawn. --as-described keeps memory the way that a hand-made assessment describes.

A level is one of those that come with it (first-steps, climb, minefield), generated:SEED, or a
text file: # wall, . open, @ start, S switch, E exit, * mine, o mine that arms once it is touched.
"""
EXAMPLES = """\
examples:
  python -m memfit.systems.ninja --n-envs 8 --steps 50000
  python -m memfit.systems.ninja --n-envs 4 --steps 512 --n-steps 16 --as-described
  python -m memfit.systems.ninja --n-envs 4 --workers fork --level climb
  python -m memfit.systems.ninja --headless --profile-memory --profile-frames 1000 \\
      --memory-snapshot-interval 100
"""


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = parser_of("ninja", DESCRIPTION, EXAMPLES, {}, TrainingSettings, EnvironmentConfig)
    add = parser.add_argument
    add("--level", action="append", metavar="NAME", help="a level; several are drawn from")
    add("--graphs", action="store_true", help="learn from the level's graph too")
    add(
        "--with",
        dest="changes",
        metavar="CHANGES",
        help=f"as described but for these: {', '.join(Memory.names())}",
    )
    group = parser.add_argument_group("profiling, instead of training")
    add = group.add_argument
    add("--headless", action="store_true", help="no window: always so")
    add("--profile-memory", action="store_true", help="write memory_profiling_report.txt too")
    add("--profile-frames", type=int, metavar="N", help="frames to profile (1000)")
    add("--memory-snapshot-interval", type=int, default=100, metavar="N", help="frames (100)")
    add("--output", type=Path, default=Path(), metavar="DIR", help="folder of the reports")
    if profiling(parser.parse_args(argv)):
        parser.set_defaults(n_envs=1, profile_frames=1000)
    if parser.parse_args(argv).as_described:
        parser.set_defaults(storage="library")
    return parser.parse_args(argv)


def profiling(options: argparse.Namespace) -> bool:
    """Whether a command line asks for a profile and not for a training."""
    return bool(options.profile_memory or options.profile_frames is not None)


def config_of(options: argparse.Namespace) -> EnvironmentConfig:
    """The environment that a command line asks for."""
    if options.changes is not None and not options.as_described:
        raise UsageError("--with names changes to what was described: add --as-described")
    fitted, described = EnvironmentConfig.for_parallel_training, EnvironmentConfig.as_described
    changes: dict[str, object] = {}
    if options.changes is not None:
        changes["memory"] = Memory.only(*filter(None, options.changes.split(",")))
    if options.graphs:
        carried = options.as_described or profiling(options)
        changes["graphs"] = "arrays" if carried else "number"
    config = (described if options.as_described else fitted)(
        levels=tuple(options.level or EnvironmentConfig().levels),
        max_steps=options.max_steps,
        entities=options.entities,
        **changes,
    )
    from memfit.systems.ninja.level import load

    for name in config.levels:
        load(name)  # what is wrong with a level is said before anything is built
    return config


def run_profile(options: argparse.Namespace) -> int:
    """Profile its memory by `memfit profile`, and its time; say where the reports are."""
    config = config_of(options)
    for name, value in (
        ("n-envs", options.n_envs),
        ("profile-frames", options.profile_frames),
        ("memory-snapshot-interval", options.memory_snapshot_interval),
    ):
        if value < 1:
            raise UsageError(f"--{name} is {value}: give 1 or more")
    folder: Path = options.output
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise UsageError(f"there is no folder {folder} to write to: give another --output")
    code = 0
    if options.profile_memory:
        words = [sys.executable, "-m", "memfit", "profile", TARGET, "--text-report"]
        words += ["--option", f"config={json.dumps(to_json(config))}"]
        words += ["--frames", str(options.profile_frames), "--envs", str(options.n_envs)]
        words += ["--every", str(options.memory_snapshot_interval), "--seed", str(options.seed)]
        code = subprocess.run([*words, *QUIET[: options.quiet]], check=False, cwd=folder).returncode
        if code not in (0, LEAKS):
            return code
        say(f"written: {folder / REPORT}")
    from memfit.systems.ninja.frame_times import frame_times

    # Times are taken in a second pass, so that neither profiler counts the other.
    times = frame_times(
        config,
        n_envs=options.n_envs,
        frames=options.profile_frames,
        seed=options.seed,
        progress=Progress(quiet=options.quiet),
    )
    (folder / STATS).write_text(times, encoding="utf-8")
    say(f"written: {folder / STATS}")
    return code


def run_training(options: argparse.Namespace) -> int:
    """Train, and print a line a rollout and what it took at the end."""
    settings = settings_from(
        TrainingSettings, options, env=config_of(options), device=device_of(options.device)
    )
    from memfit.systems.ninja.training import train

    done = 0

    def report(rollout: Rollout) -> None:
        nonlocal done
        done = rollout.steps
        say(
            f"{rollout.steps:,} steps: mean return {rollout.mean_return:+.2f}, "
            f"{rollout.won:.0%} won, {rollout.episodes:,} episodes, {rollout.seconds:.1f} s"
        )

    code = 0
    try:
        train(settings, report, Progress(quiet=options.quiet))
    except KeyboardInterrupt:
        say(f"stopped after {done:,} of {settings.steps:,} steps")
        code = 130
    whose = "this process" if settings.start_method else "the process"
    say(f"peak of {whose} {format_bytes(peak_bytes())} with {settings.n_envs:,} environments")
    return code


def main(argv: Sequence[str] | None = None) -> int:
    """The program; its exit code."""
    options = arguments(argv)
    return ended(run_profile if profiling(options) else run_training, options)


if __name__ == "__main__":
    sys.exit(main())
