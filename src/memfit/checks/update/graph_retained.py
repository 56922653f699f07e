"""MF203: the last backward pass keeps its graph.

What: `backward(retain_graph=True)` where no further backward pass of the same step follows.

Why: activations are freed by the backward pass unless they are retained. Then they live as long as
any variable names the loss or the outputs, which is until the next update has replaced them: two
graphs are there at once, from the second iteration on.

Bad:
    for batch in batches:
        loss = network(batch).mean()
        loss.backward(retain_graph=True)
        optimizer.step()

Good:
    for batch in batches:
        loss = network(batch).mean()
        loss.backward()
        optimizer.step()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks._graphs import comes_from_before, comes_from_caller
from memfit.checks._rows import named, without
from memfit.checks.spot import Spot
from memfit.model import Changes, Finding, Fix, Ledger, RunSpec, Severity
from memfit.syntax import Source, constant, keyword, last_name
from memfit.units import format_bytes

CODE = "MF203"
ROW = "rollout.last_graph"
SEVERITY = Severity.WARNING
CLEAN = (
    "if c:\n    a.backward(retain_graph=True)\n    one.step()\nb.backward()\ntwo.step()\n",
    "for b in bs:\n    one.backward(retain_graph=True)\n    two.backward()\n",
    "def f(mmd):\n    loss = -mmd\n    loss.backward(retain_graph=True)\n    opt.step()\n",
    "def actor_loss(out):\n    out.backward(retain_graph=True)\n\ndef f():\n    actor_loss(x)\n",
    (
        "hidden = start(x)\nfor b in bs:\n    hidden = net(b, hidden)\n"
        "    hidden.sum().backward(retain_graph=True)\n    optimizer.step()\n"
    ),
    (
        "out = net(x)\nfor b in bs:\n    loss = f(out, b)\n"
        "    loss.backward(retain_graph=True)\n    optimizer.step()\n"
    ),
    "for head in heads:\n    loss_of(head, shared).backward(retain_graph=True)\n",
)
_STEPS = ("step", "zero_grad")


def find_in_source(source: Source) -> Iterator[Spot]:
    for call in source.nodes(ast.Call):
        if (
            last_name(call.func) != "backward"
            or constant(source, keyword(call, "retain_graph")) is not True
        ):
            continue
        rest = _rest(source, call)
        if rest is None or _used_again(source, call):
            continue
        if comes_from_before(source, call) or comes_from_caller(source, call):
            continue
        if any(_has(s, *_STEPS) for s in rest):
            yield Spot(
                call,
                "the graph is retained, and no backward pass uses it again",
                "backward() without retain_graph",
            )


def find(spec: RunSpec, ledger: Ledger, limit: int) -> Iterator[Finding]:
    held = named(ledger, [ROW])
    if spec.update.keeps_last_graph and held:
        yield Finding(
            code=CODE,
            severity=SEVERITY,
            message=f"the last graph, {format_bytes(held)}, is alive while the next rollout runs",
            where="update",
            bytes=held,
        )


def fix(spec: RunSpec, ledger: Ledger) -> Iterator[Fix]:
    yield Fix(
        change="backward() without retain_graph, and no name of the loss after the update",
        ledger=without(ledger, ROW),
        safe=True,
        changes=Changes(update={"keeps_last_graph": False}),
    )


def _rest(source: Source, call: ast.Call) -> list[ast.stmt] | None:
    """The statements after a call in its own block; None where it is a part of another one."""
    statement = source.parent(call)
    block = source.parent(statement) if statement is not None else None
    if not isinstance(statement, ast.Expr) or block is None:
        return None
    for name in ("body", "orelse", "finalbody"):
        body = getattr(block, name, None)
        if isinstance(body, list) and statement in body:
            return body[body.index(statement) + 1 :]
    return None


def _used_again(source: Source, call: ast.Call) -> bool:
    """Whether a later backward pass may go through the graph: here, or by what is returned."""
    inside = source.function(call) or source.tree
    given = [n.value for n in ast.walk(inside) if isinstance(n, ast.Return)]
    parts = [p for v in given for p in (v.elts if isinstance(v, ast.Tuple) else [v])]
    return any(isinstance(p, ast.Name) for p in parts) or any(
        isinstance(n, ast.Call)
        and (last_name(n.func) in ("backward", "grad") or keyword(n, "retain_graph") is not None)
        and n.lineno > call.lineno
        for n in ast.walk(inside)
    )


def _has(statement: ast.stmt, *names: str) -> bool:
    return any(isinstance(n, ast.Call) and last_name(n.func) in names for n in ast.walk(statement))
