"""MF507: rendered frames are collected while the training goes on.

What: `env.render()` goes into a list in a loop that learns, and the list is never emptied.

Why: a frame of 400 by 600 pixels in colour is 703 KiB: a thousand steps are 687 MiB. A writer that
takes each frame as it comes (`imageio.get_writer`, `RecordVideo`) holds one.

Bad:
    frames = []
    for step in range(100_000):
        state, reward, done = env.step(act(state))
        frames.append(env.render())
        loss_of(state, reward).backward()

Good:
    for step in range(100_000):
        state, reward, done = env.step(act(state))
        writer.append_data(env.render())
        loss_of(state, reward).backward()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, dotted, is_assigned, is_emptied, last_name, loops_around

CODE = "MF507"
SEVERITY = Severity.WARNING
CLEAN = (
    (
        "for e in range(9):\n    frames = []\n    for s in range(9):\n"
        "        frames.append(env.render())\n        l().backward()\n    save(frames)\n"
    ),
    "frames = []\nfor s in range(200):\n    frames.append(env.render())\n    env.step(act())\n",
)
_LEARNS = {"backward", "learn", "optimize_model", "update", "train_step"}


def find_in_source(source: Source) -> Iterator[Spot]:
    for call in source.nodes(ast.Call):
        if last_name(call.func) != "append" or not call.args:
            continue
        kept = call.func.value if isinstance(call.func, ast.Attribute) else None
        first = call.args[0]
        if not isinstance(first, ast.Call) or last_name(first.func) != "render" or not dotted(kept):
            continue
        loops = list(loops_around(source, call))
        names = {
            last_name(n.func) for loop in loops for n in ast.walk(loop) if isinstance(n, ast.Call)
        }
        if loops and names & _LEARNS and not any(_anew(loop, dotted(kept)) for loop in loops):
            yield Spot(
                call,
                f"{dotted(kept)} keeps every frame of the training",
                "write each frame as it comes, or record a few episodes with RecordVideo",
            )


def _anew(loop: ast.AST, name: str) -> bool:
    """Whether a loop empties it, or begins it anew."""
    return is_emptied(loop, name) or is_assigned(loop, name)
