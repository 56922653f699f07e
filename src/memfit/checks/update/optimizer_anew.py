"""MF204: an optimizer is made anew for every update.

What: an optimizer for networks that stay the same is made in the loop, or in the method, that takes
its steps.

Why: Adam's two moments, twice the size of the network, are allocated and filled each time while
those of the last one may still be there, and what they had learned of the gradients is lost.

Bad:
    import torch

    for batch in batches:
        optimizer = torch.optim.Adam(network.parameters())
        loss_of(network, batch).backward()
        optimizer.step()

Good:
    import torch

    optimizer = torch.optim.Adam(network.parameters())
    for batch in batches:
        loss_of(network, batch).backward()
        optimizer.step()
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, dotted, is_assigned, last_name, loops_around

CODE = "MF204"
SEVERITY = Severity.WARNING
FOUND = (
    (
        "from torch.optim import Adam\nclass Agent:\n    def update(self, batch):\n"
        "        o = Adam(self.net.parameters())\n        self.loss(batch).backward()\n"
        "        o.step()\n"
    ),
)
CLEAN = (
    (
        "import torch\nfor seed in range(3):\n    net = make()\n"
        "    o = torch.optim.Adam(net.parameters())\n    for b in bs:\n        o.step()\n"
    ),
    (
        "import torch\nfor task in tasks:\n    o = torch.optim.SGD(net.parameters())\n"
        "    for b in task:\n        loss_of(net, b).backward()\n        o.step()\n"
    ),
    "import torch\ndef train(net):\n    o = torch.optim.Adam(net.parameters())\n    o.step()\n",
)
_NAMES = {"Adam", "AdamW", "SGD", "RMSprop", "RAdam", "Adamax", "Adagrad"}
_UPDATES = re.compile(r"^_?(update|learn|train_step|optimi[sz]e|replay|update_\w+|train_batch)$")


def find_in_source(source: Source) -> Iterator[Spot]:
    for call in source.nodes(ast.Call):
        name = source.qualified(call.func)
        if name.split(".")[-1] not in _NAMES or not name.startswith("torch.optim"):
            continue
        trained = _trained(call)
        above = source.parent(call)
        held = last_name(above.targets[0]) if isinstance(above, ast.Assign) else ""
        where = next(iter(loops_around(source, call)), None) or _method(source, call)
        if where is None or any(_steps(loop, held) for loop in _loops_in(where)):
            continue  # each task or epoch begins with one, and takes many steps with it
        if trained and held and _steps(where, held) and not _made_in(where, trained):
            yield Spot(
                call,
                f"an optimizer of {trained} is made each time that it is updated",
                "make it once, before",
            )


def _trained(call: ast.Call) -> str:
    first = call.args[0] if call.args else None
    if isinstance(first, ast.Call) and last_name(first.func) == "parameters":
        return dotted(first.func.value) if isinstance(first.func, ast.Attribute) else ""
    return ""


def _method(source: Source, call: ast.Call) -> ast.AST | None:
    """The method of an agent that takes one update: a loop around it is elsewhere."""
    inside = source.function(call)
    if inside is None or source.class_of(inside) is None or not _UPDATES.match(inside.name):
        return None
    return None if any(_steps(loop, "") for loop in _loops_in(inside)) else inside


def _loops_in(where: ast.AST) -> list[ast.AST]:
    """The loops that are in a loop or function."""
    return [n for n in ast.walk(where) if isinstance(n, ast.For | ast.While) and n is not where]


def _steps(where: ast.AST, held: str) -> bool:
    return any(
        isinstance(n, ast.Attribute) and n.attr == "step" and held in ("", last_name(n.value))
        for n in ast.walk(where)
    )


def _made_in(where: ast.AST, trained: str) -> bool:
    root = trained.split(".", maxsplit=1)[0]
    if is_assigned(where, trained, root):
        return True
    return any(
        a.arg == trained for n in ast.walk(where) if isinstance(n, ast.arguments) for a in n.args
    )
