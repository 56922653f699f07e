"""`memfit profile`: does an environment leak, who holds what grows, what does one more cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from memfit.cli.messages import profile_bar
from memfit.cli.output import (
    Format,
    FormatOption,
    NetworkOption,
    OutputOption,
    QuietOption,
    check_output,
    check_timeout,
    emit,
    parse_limit,
)
from memfit.errors import UsageError

_OVER, _LEAKS = 3, 4
REPORT = "memory_profiling_report.txt"


def profile(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="A Gymnasium id (CartPole-v1), package.module:make_env, or a system (ninja).",
            show_default=False,
        ),
    ],
    *,
    frames: Annotated[
        int, typer.Option(metavar="N", help="Frames; more where something grows.")
    ] = 1000,
    every: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Frames between readings; fewer are taken where they cost time.",
            show_default="a tenth",
        ),
    ] = None,
    envs: Annotated[
        int, typer.Option(metavar="N", help="Measure what an env costs with up to so many.")
    ] = 4,
    policy: Annotated[
        str,
        typer.Option(
            metavar="POLICY", help="random, module:policy, or a file of actions (.npy, .json)."
        ),
    ] = "random",
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the env and its actions.")] = 0,
    sites: Annotated[
        bool, typer.Option("--sites", help="Find the allocating lines in a second run.")
    ] = False,
    limit_per_env: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Exit with 3 if one more env costs more (20MiB)."),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Compare with a profile that was saved before."),
    ] = None,
    save_baseline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Save this profile, to compare with.")
    ] = None,
    text_report: Annotated[
        bool, typer.Option("--text-report", help=f"Write {REPORT} too, into this folder.")
    ] = False,
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="Give this to what makes the env: a number, a text, JSON."
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="End a child that takes longer.")
    ] = 300.0,
    network: NetworkOption = False,
    form: FormatOption = Format.TERMINAL,
    output: OutputOption = None,
    quiet: QuietOption = False,
) -> None:
    """Step an environment, and say whether it leaks and what it costs.

    It is stepped in a child of its own that cannot take this machine down, and read from outside
    where it waits: what Python's objects and malloc have in use, what the kernel counts, threads
    and files. Where something grows, it is stepped on until the number of episodes has doubled
    and doubled again: what goes on growing leaks, what ends does not.

    \b
    stable     memory is where it was at the ends of episodes
    filling    it grows up to a size that is known
    retained   malloc keeps what was freed
    leaking    so many bytes a frame and an episode, with who holds them

    \b
    Examples:
      memfit profile CartPole-v1
      memfit profile my_game.envs:make_env --frames 5000 --envs 16
      memfit profile ninja --sites --text-report
      memfit profile my_game.envs:make_env --save-baseline main.json
      memfit profile my_game.envs:make_env --baseline main.json --limit-per-env 20MiB

    Exit code 0: no leak. 1: the environment failed. 2: bad usage. 3: over --limit-per-env.
    4: it leaks.
    """
    limit = parse_limit(limit_per_env)
    if limit is not None and envs == 1:
        raise UsageError("--limit-per-env needs --envs 2 or more: one env has no slope")
    check_timeout(timeout)
    for file in (output, save_baseline, Path(REPORT) if text_report else None):
        check_output(file, form)

    from memfit import render
    from memfit.api import profile as api

    watching = profile_bar(quiet=quiet)
    result = api.profile(
        target,
        frames=frames,
        every=every,
        envs=envs,
        policy=policy,
        seed=seed,
        sites=sites,
        baseline=baseline,
        options=dict(_option(text) for text in option or ()),
        timeout=timeout,
        network=network,
        watching=watching,
    )
    if watching is not None:
        watching(None)
    if save_baseline is not None:
        emit(Format.JSON, save_baseline, render.profile_blocks, render.profile_json, result)
    if text_report:
        Path(REPORT).write_text(render.profile_report(result), encoding="utf-8")
    emit(form, output, render.profile_blocks, render.profile_json, result)
    if result.verdict.value == "leaking":
        raise typer.Exit(_LEAKS)
    if limit is None:
        return
    if result.bytes_per_env is None:
        raise UsageError(
            "--limit-per-env could not be checked: what one more env costs was not measured, as "
            "the last note says"
        )
    if result.bytes_per_env > max(limit, result.env_noise(workers=False)):
        raise typer.Exit(_OVER)


def _option(text: str) -> tuple[str, Any]:
    """`frames=4`, `name=high` or `config={...}`: what is no JSON is a text."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise UsageError(f"--option {text}: write NAME=VALUE, such as --option frame_skip=4")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
