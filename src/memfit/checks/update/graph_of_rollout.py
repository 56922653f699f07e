"""MF202: the rollout records gradients that are thrown away.

What: acting is not under `torch.no_grad()`, and what it gives is kept in a list and only used after
`detach()`.

Why: each kept tensor holds the graph that made it, with all activations of that step, until the
list ends: the rollout costs as much as an update. Without gradients the numbers are the same.

Bad:
    import torch

    def train():
        for step in range(100):
            log_probs.append(policy(state).log_prob(action))
            state = env.step(action)
        old = torch.stack(log_probs).detach()

Good:
    import torch

    def train():
        for step in range(100):
            with torch.no_grad():
                log_probs.append(policy(state).log_prob(action))
            state = env.step(action)
        old = torch.stack(log_probs)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks._rows import named, without
from memfit.checks.spot import Spot
from memfit.model import Changes, Finding, Fix, Ledger, RunSpec, Severity
from memfit.syntax import Source, in_step_loop, last_name, under_with
from memfit.units import format_bytes

CODE = "MF202"
ROW = "rollout.graph"
SEVERITY = Severity.WARNING
CLEAN = (
    (
        "def train():\n    for i in range(9):\n        log_probs.append(p.log_prob(a))\n"
        "        s = env.step(a)\n    loss = -(torch.stack(log_probs) * returns).sum()\n"
    ),
    (
        "def train():\n    for i in range(9):\n        log_probs.append(p.log_prob(a).detach())\n"
        "        s = env.step(a)\n    old = torch.stack(log_probs).detach()\n"
    ),
)
_OFF = ("no_grad", "inference_mode")
_NUMBERS = {"detach", "item", "numpy", "float", "tolist"}


def find_in_source(source: Source) -> Iterator[Spot]:
    for call in source.nodes(ast.Call):
        kept = call.func
        if not isinstance(kept, ast.Attribute) or kept.attr != "append" or len(call.args) != 1:
            continue
        inside = source.function(call)
        if not isinstance(kept.value, ast.Name) or inside is None or not _computes(call.args[0]):
            continue
        if not in_step_loop(source, call) or under_with(source, call, *_OFF):
            continue
        if _only_detached(source, inside, kept.value.id):
            yield Spot(
                call,
                f"{kept.value.id} keeps the graph of every step, and is only used after detach()",
                "with torch.no_grad(): around acting",
            )


def find(spec: RunSpec, ledger: Ledger, limit: int) -> Iterator[Finding]:
    held = named(ledger, [ROW])
    if spec.update.records_gradients and held:
        yield Finding(
            code=CODE,
            severity=SEVERITY,
            message=f"the rollout records gradients: {format_bytes(held)} of graph that are kept "
            "beside it",
            where="rollout",
            bytes=held,
        )


def fix(spec: RunSpec, ledger: Ledger) -> Iterator[Fix]:
    yield Fix(
        change="with torch.no_grad(): around acting, and no graph that outlives its update",
        ledger=without(ledger, ROW, "rollout.last_graph"),
        safe=True,
        changes=Changes(update={"rollout_records_gradients": False, "keeps_last_graph": False}),
    )


def _computes(value: ast.expr) -> bool:
    """Whether it is what a distribution or network gave, with its graph."""
    called = {last_name(n.func) for n in ast.walk(value) if isinstance(n, ast.Call)}
    return "log_prob" in called and not called & _NUMBERS


def _only_detached(source: Source, inside: ast.AST, name: str) -> bool:
    reads = [
        n
        for n in ast.walk(inside)
        if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
    ]
    uses = [n for n in reads if getattr(source.parent(n), "attr", "") not in ("append", "clear")]
    return bool(uses) and all(_detached(source, n) for n in uses)


def _detached(source: Source, node: ast.AST) -> bool:
    for above in source.ancestors(node):
        if isinstance(above, ast.stmt):
            return False
        if isinstance(above, ast.Attribute) and above.attr == "detach":
            return True
    return False
