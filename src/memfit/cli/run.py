"""`memfit run`: any command, with the inside view of its memory ready."""

from __future__ import annotations

import typer


def run(context: typer.Context) -> None:
    """Run a command so that memfit can see inside.

    Runs the command after -- as it is: same terminal, same signals, same exit code. While it runs,
    `memfit explain PID` names the arrays, tensors and objects of every Python in it by who holds
    them. Nothing is installed or changed, and nobody else can ask.

    \b
    Examples:
      memfit run -- python train.py --envs 8
      memfit run -- bash experiments.sh

    Exit code: the command's own; 128 + n where signal n ended it. 2: it cannot be started.
    """
    from memfit import api

    raise typer.Exit(api.run(tuple(context.obj or ())))
