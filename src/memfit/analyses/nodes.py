"""Deals a run out to nodes: a node runs the same run with fewer agents, and exchanges gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from memfit.analyses.upper_bound import upper_bytes
from memfit.model import (
    Component,
    Evidence,
    EvidenceKind,
    Kind,
    Ledger,
    NodesPlan,
    Readings,
    size,
)

EXCHANGE = "nodes.gradient_exchange"
SHARD, MODEL, GRADIENTS, OWN = (
    "shard of the rollout and the envs",
    "model and optimizer, the same on each",
    "gradients and their exchange",
    "each node's own process",
)
# What an update works on at once is as large on each node as on one.
_KEPT = (Kind.ACTIVATIONS, Kind.SCRATCH, Kind.COPIES, Kind.FRAGMENTATION)
_BUCKETS = "taken to be a second copy of the gradients, as buckets of DistributedDataParallel are"


def dealt_knob(ledger: Ledger) -> str:
    """The setting that most bytes grow with: agents or envs; the length of a run is none."""
    weight: dict[str, int] = {}
    for component, amount in zip(ledger.components, ledger.sizes, strict=True):
        if component.kind in _KEPT:
            continue
        for name in component.size.knobs - {ledger.length}:
            if component.size.evaluate({**ledger.knobs, name: 2 * ledger.knobs[name]}) > amount:
                weight[name] = weight.get(name, 0) + amount
    known = [name for name in ledger.knobs if name in weight]
    return max(known, key=lambda name: weight[name], default="")


def with_exchange(ledger: Ledger) -> Ledger:
    """The ledger of one of several nodes, which averages its gradients with the others."""
    rows = [c for c in ledger.components if c.kind is Kind.GRADIENTS]
    if not rows:
        return ledger
    exchange = Component(
        name=EXCHANGE,
        kind=Kind.GRADIENTS,
        size=sum((c.size for c in rows), size(0)),
        phases=("update",),
        evidence=Evidence(kind=EvidenceKind.ASSUMED, where=_BUCKETS),
    )
    return ledger.with_rows((*ledger.components, exchange))


def largest_share(ledger: Ledger, readings: Readings, knob: str, node: int) -> int:
    """The most of a setting that one node holds by its upper bound; 0 where not even one fits."""

    def fits(value: int) -> bool:
        return upper_bytes(ledger.at(**{knob: value}), readings) <= node

    low, high = 0, ledger.knobs[knob] + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def nodes_plan(
    ledger: Ledger, readings: Readings, knob: str, whole: int, node: int
) -> NodesPlan | None:
    """So many nodes as it takes, each with as much as the others; None where one unit is too much.

    `ledger` is of a run that fills about one node.
    """
    most = largest_share(ledger, readings, knob, node)
    if not most:
        return None
    count = -(-whole // most)
    each = -(-whole // count)
    at_share = ledger.at(**{knob: each})
    return NodesPlan(
        node_bytes=node,
        knob=knob,
        whole=whole,
        count=count,
        each=each,
        ledger=at_share,
        upper_bytes=upper_bytes(at_share, readings),
        parts=_bytes_by(at_share, lambda c: _part(c, at_share, knob)),
        evidence=_bytes_by(at_share, lambda c: str(c.evidence.kind)),
    )


def _bytes_by(ledger: Ledger, key: Callable[[Component], str]) -> Mapping[str, int]:
    moment = ledger.peak.moment
    alive = tuple(c for c in ledger.components if c.alive_in(moment))
    return ledger.with_rows(alive).bytes_by(key)


def _part(component: Component, ledger: Ledger, knob: str) -> str:
    match component.kind:
        case Kind.PARAMETERS | Kind.OPTIMIZER:
            return MODEL
        case Kind.GRADIENTS:
            return GRADIENTS
    less = {**ledger.knobs, knob: max(1, ledger.knobs[knob] // 2)}
    grows = component.size.evaluate(less) < ledger.bytes_of(component)
    return SHARD if grows and component.kind is not Kind.FRAGMENTATION else OWN
