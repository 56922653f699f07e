"""`memfit plan`: predict the peak before the run."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from memfit.cli.messages import progress
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
from memfit.units import parse_bytes

DOES_NOT_FIT = 3
# Unknown words are kept, so that the command itself can say where a script's arguments go.
SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}


def plan(
    context: typer.Context,
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="A training script or notebook, a run spec (run.toml), or package.module:factory. "
            "All that stands after -- goes to the script; without a TARGET, it is the command.",
            show_default=False,
        ),
    ] = "",
    module: Annotated[
        str,
        typer.Option("-m", metavar="MODULE", help="Plan a module, as python -m runs it."),
    ] = "",
    probe: Annotated[
        bool,
        typer.Option("--probe", help="Rehearse the run in a child: slower and more exact."),
    ] = False,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Never rehearse, even where more than 5 % is in doubt."),
    ] = False,
    limit: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Judge against this (16GiB) instead of this machine."),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KNOB=VALUE", help="What if: plan with another value."),
    ] = None,
    on: Annotated[
        list[str] | None,
        typer.Option(metavar="HARDWARE", help="Largest settings for this: rtx-4090, 24GiB ..."),
    ] = None,
    per: Annotated[
        str,
        typer.Option(metavar="KNOB", help="Also show what one more of it would add to each row."),
    ] = "",
    system: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="SYSTEM",
            help="Print what to ask slurm, kubernetes, ray or docker for, from the upper bound.",
        ),
    ] = "",
    nodes: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="How many machines of this memory it takes when its agents or envs (or the knob "
            "of --per) are dealt out to them.",
        ),
    ] = None,
    device: Annotated[
        str,
        typer.Option(metavar="DEVICE", help="Where it would train: cuda, on the card of --on."),
    ] = "cpu",
    timeout: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="Give up when the script takes longer."),
    ] = 120.0,
    real_env: Annotated[
        bool,
        typer.Option("--real-env", help="Never play recorded env steps back to reach learning."),
    ] = False,
    network: NetworkOption = False,
    all_findings: Annotated[
        bool,
        typer.Option(
            "--all-findings", help="Also findings and advice below 1 % of the peak or 8 MiB."
        ),
    ] = False,
    form: FormatOption = Format.TERMINAL,
    output: OutputOption = None,
    quiet: QuietOption = False,
) -> None:
    """Predict a run's peak memory before it starts.

    Says how much, in which phase, why, whether it fits here, and the largest settings that do.
    The script runs unchanged in a child process and is stopped where it would begin to learn; a
    loop of its own runs on until two cycles of collecting and updating were seen.

    \b
    Examples:
      memfit plan train.py
      memfit plan train.py -- --env Ant-v5 --n-envs 64
      memfit plan -m rl_zoo3.train -- --algo ppo --env CartPole-v1
      memfit plan -- python -m rl_zoo3.train --algo ppo --env CartPole-v1
      memfit plan train.py --limit 16GiB --set n_envs=32 --set n_steps=4096
      memfit plan train.py --on rtx-4090 --on laptop-16gb
      memfit plan train.py --device cuda --on rtx-4090
      memfit plan train.py --per n_envs
      memfit plan train.py --for slurm
      memfit plan drone-fit.toml --set agents=1_000_000_000 --nodes 24GiB
      memfit plan train.py --probe --format json -o plan.json

    Exit code 0: it fits. 3: it does not (with --for and --nodes, only where --limit says of what).
    1: the script itself failed. 2: bad usage or input.
    """
    if context.args:
        raise UsageError(
            f"plan does not know {' '.join(context.args)!r}: see memfit plan --help. "
            "A script's own arguments go after --, as in: memfit plan train.py -- --seed 1"
        )
    if module and target:
        raise UsageError(f"-m {module} and {target} are two targets: leave one of them out")
    if not (module or target or context.obj):
        raise UsageError(
            "say what to plan: a script (train.py), a spec (run.toml), -m MODULE, or a command "
            "after --. See memfit plan --help"
        )
    if probe and quick:
        raise UsageError("--probe rehearses and --quick forbids it: leave one of them out")
    limit_bytes = parse_limit(limit)
    knobs = parse_changes(change or [])
    check_timeout(timeout)
    check_output(output, form)

    from memfit import render
    from memfit.api import memory_request
    from memfit.api import plan as api
    from memfit.api.plan_nodes import plan_nodes

    if system:
        memory_request.check_system(system)

    node_bytes = None if nodes is None else parse_bytes(nodes)
    if node_bytes == 0:
        raise UsageError("--nodes 0: give the memory of one node, such as 24GiB")
    if nodes and system:
        raise UsageError("--nodes and --for are two questions: leave one of them out")

    def planned(**share: int) -> Any:
        return api.plan(
            module or target,
            module=bool(module),
            args=tuple(context.obj or ()),
            probe=probe,
            quick=quick,
            limit=limit_bytes,
            knobs={**knobs, **share},
            on=tuple(on or ()),
            per=per,
            device=device,
            timeout=timeout,
            network=network,
            real_env=real_env,
            all_findings=all_findings,
            progress=progress(quiet=quiet),
        )

    result = planned()
    if node_bytes is not None:
        shares = plan_nodes(result, lambda share: planned(**share), node_bytes, per)
        emit(form, output, render.nodes_blocks, render.nodes_json, result, shares)
    elif system:
        request = memory_request.memory_request(result, system)
        emit(form, output, render.request_blocks, render.request_json, result, request)
    else:
        emit(form, output, render.plan_blocks, render.plan_json, result)
    # What is asked of another machine is judged by a limit that was given alone.
    if not result.fits and (limit is not None or not (system or nodes)):
        raise typer.Exit(DOES_NOT_FIT)


def parse_changes(changes: list[str]) -> dict[str, int]:
    """`["n_envs=8"]` as `{"n_envs": 8}`; thousands may be set apart by `_`."""
    knobs: dict[str, int] = {}
    for change in changes:
        name, equals, value = change.partition("=")
        name, digits = name.strip(), value.strip().replace("_", "")
        if not equals or not name.isidentifier() or not digits.isdecimal() or not int(digits):
            raise UsageError(
                f"--set {change}: write a knob and a whole number above zero, such as n_envs=8"
            )
        knobs[name] = int(digits)
    return knobs
