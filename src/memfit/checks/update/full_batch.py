"""MF201: one update works on the whole rollout at once.

What: observations of all steps go through the network in one call, whose loss is propagated back;
or `batch_size` is as large as the rollout.

Why: what the network computes on the way is kept for every sample until the backward pass, and that
is usually far more than the rollout itself. Minibatches keep it for a few samples; gradients added
over pieces (`memfit.dropins.accumulate`) are those of the whole batch.

Bad:
    import torch

    def train():
        states = []
        for step in range(100):
            states.append(state)
            state, reward = env.step(act(state))
        batch = torch.stack(states)
        loss_of(network(batch)).backward()

Good:
    import torch

    def train():
        states = torch.empty(100, *shape)
        for step in range(100):
            states[step] = state
            state, reward = env.step(act(state))
        for chosen in torch.randperm(100).split(10):
            loss_of(network(states[chosen])).backward()
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from memfit.checks._arrays import OBSERVATION
from memfit.checks._rows import named
from memfit.checks._sb3 import models
from memfit.checks.spot import Spot
from memfit.model import Finding, Ledger, RunSpec, Severity
from memfit.syntax import Source, dotted, in_package, in_step_loop, last_name
from memfit.units import format_bytes

CODE = "MF201"
SEVERITY = Severity.INFO
FOUND = (
    (
        "from stable_baselines3 import PPO\n"
        "model = PPO('MlpPolicy', 'CartPole-v1', n_steps=4096, batch_size=4096)\n"
    ),
)
_SMALL = 1024  # samples
_STACKS = ("stack", "cat")
_NETWORK = re.compile(r"net|policy|actor|critic|model|forward|agent|encode", re.IGNORECASE)


def find_in_source(source: Source) -> Iterator[Spot]:
    for model in models(source):
        whole = model.algorithm.endswith("PPO") and model.batch_size == model.rollout
        if whole and (model.rollout or 0) > _SMALL:
            yield Spot(
                model.call,
                f"batch_size {model.rollout:,} is the whole rollout",
                "a smaller batch_size, or memfit.dropins.MicroBatchPPO",
            )
    for node in source.nodes(ast.Assign):
        target, inside = node.targets[0], source.function(node)
        if isinstance(target, ast.Name) and inside is not None and _all_steps(source, node.value):
            for call in _forwards(source, inside, target.id):
                yield Spot(
                    call,
                    f"{target.id}, which holds every step, goes through the network at once",
                    "minibatches, or pieces with memfit.dropins.accumulate",
                )


def find(spec: RunSpec, ledger: Ledger, limit: int) -> Iterator[Finding]:
    """An update that is described without minibatches; batch_size of a library is MF004's."""
    whole = spec.update.minibatch == spec.update.batch and "*" in str(spec.update.batch)
    held = named(ledger, ["update.activations"])
    if whole and not spec.buffer and 4 * held >= ledger.peak.bytes:
        yield Finding(
            code=CODE,
            severity=SEVERITY,
            message=f"one update works on {spec.update.batch} samples at once: {format_bytes(held)}"
            " are kept for its backward pass",
            where="update",
            bytes=held,
        )


def _all_steps(source: Source, value: ast.expr) -> bool:
    """Whether it joins a list to which a rollout of the same function has added every step."""
    for n in ast.walk(value):
        if isinstance(n, ast.Call) and in_package(source, n.func, ("torch",), _STACKS) and n.args:
            first = n.args[0]
            if isinstance(first, ast.Name) and OBSERVATION.search(first.id):
                return any(
                    dotted(c.func) == f"{first.id}.append"
                    and source.scope(c) is source.scope(first)
                    and in_step_loop(source, c)
                    for c in source.nodes(ast.Call)
                )
    return False


def _forwards(source: Source, inside: ast.AST, name: str) -> Iterator[ast.Call]:
    """Calls of a network with all of it, where nothing else is done with a part of it."""
    nodes = list(ast.walk(inside))
    backward = any(isinstance(n, ast.Attribute) and n.attr == "backward" for n in nodes)
    chosen = any(
        isinstance(n, ast.Subscript) and last_name(n.value) == name and _by_index(n.slice)
        for n in nodes
    )
    for n in nodes if backward and not chosen else []:
        given = n.args[0] if isinstance(n, ast.Call) and n.args else None
        if isinstance(given, ast.Name) and given.id == name and isinstance(n, ast.Call):
            yield from [n] if _NETWORK.search(last_name(n.func)) else []


def _by_index(index: ast.expr) -> bool:
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return any(not isinstance(p, ast.Constant) for p in parts[:1]) and not _whole(parts[0])


def _whole(part: ast.expr) -> bool:
    return isinstance(part, ast.Slice) and part.lower is None and part.upper is None
