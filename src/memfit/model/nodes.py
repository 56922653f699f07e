"""How many machines a run takes when its agents or envs are dealt out to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from memfit.model.ledger import Ledger


@dataclass(frozen=True, kw_only=True)
class NodesPlan:
    """A run over `count` nodes of `node_bytes`, each of which has `each` of `whole` of `knob`.

    `ledger` is that of the fullest node at its share; `parts` are its bytes at the peak by what
    they are for, `evidence` the same by how they are known.
    """

    node_bytes: int
    knob: str
    whole: int
    count: int
    each: int
    ledger: Ledger
    upper_bytes: int
    parts: Mapping[str, int] = field(default_factory=dict)
    evidence: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def peak_bytes(self) -> int:
        return self.ledger.peak.bytes
