"""MF113: a replay keeps tensors of the device.

What: what is put into a replay was moved to the device before. Each of its entries is then a small
block of the card's memory.

Why: the card's allocator rounds each block up to 512 bytes, and the replay takes the place that
networks and minibatches need. In RAM the same entries are smaller; a minibatch is moved at once.

Bad:
    import torch

    while True:
        state = torch.tensor(observation, device=device).unsqueeze(0)
        memory.push(state, action)
        batch = memory.sample(32)

Good:
    import torch

    while True:
        memory.push(observation, action)
        batch = torch.as_tensor(memory.sample(32)).to(device)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, constant, keyword, last_name, loops_around, origins

CODE = "MF113"
SEVERITY = Severity.INFO
_REPLAY = re.compile(r"memory|replay|buffer", re.IGNORECASE)
_PUTS = {"push", "append", "add", "store", "remember"}
_ROLLOUT = re.compile(r"rollout", re.IGNORECASE)


def find_in_source(source: Source) -> Iterator[Spot]:
    # A rollout's memory is taken whole; one that is sampled is told how many.
    sampled = set(_sampled(source))
    for call in source.nodes(ast.Call) if sampled else []:
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in _PUTS:
            continue
        into = last_name(call.func.value)
        if (
            into not in sampled
            or not _REPLAY.search(into)
            or _ROLLOUT.search(into)
            or not any(loops_around(source, call))
        ):
            continue
        parts = [e for a in call.args for e in (a.elts if isinstance(a, ast.Tuple) else [a])]
        moved = [last_name(p) for p in parts if isinstance(p, ast.Name) and _moved(source, p)]
        if moved:
            yield Spot(
                call,
                f"{', '.join(moved)} goes into {into} as a tensor of the device",
                "store it as an array, and move the minibatch",
            )


def _sampled(source: Source) -> Iterator[str]:
    """What minibatches are drawn of: x.sample(32), random.sample(x, 32)."""
    for call in source.nodes(ast.Call):
        name = last_name(call.func)
        if (
            name == "sample"
            and isinstance(call.func, ast.Attribute)
            and (call.args or call.keywords)
        ):
            yield last_name(call.func.value)
        if name in ("sample", "choices", "choice"):
            yield from (last_name(n) for a in call.args[:1] for n in ast.walk(a))


def _moved(source: Source, name: ast.Name) -> bool:
    return any(_on_device(source, value) for value in origins(source, name))


def _on_device(source: Source, value: ast.AST) -> bool:
    """Whether the outermost calls of an expression put it on a device that is not the CPU."""
    while isinstance(value, ast.Call):
        device = keyword(value, "device")
        if last_name(value.func) == "to" and value.args:
            device = value.args[0]
        if last_name(value.func) in ("cpu", "numpy", "item", "step", "tolist"):
            return False
        if device is not None:
            named = last_name(device) or str(constant(source, device) or "")
            return "device" in named.lower() or named.startswith("cuda")
        if last_name(value.func) == "cuda":
            return True
        if not isinstance(value.func, ast.Attribute):
            return False
        value = value.func.value
    return False
