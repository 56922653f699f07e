"""`plan --nodes`: how many machines a run takes, planned once more at the size of one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from memfit.analyses.nodes import dealt_knob, largest_share, nodes_plan, with_exchange
from memfit.errors import UsageError
from memfit.model import NodesPlan, Plan
from memfit.units import format_bytes

_PAPER = (
    "no run over several nodes was measured: one node holds what it is planned to hold, and it is "
    "assumed that nodes exchange nothing but gradients, and collect and learn their own shards"
)
_MOST = 2**62


def plan_nodes(
    whole: Plan, replan: Callable[[Mapping[str, int]], Plan], node: int, knob: str = ""
) -> NodesPlan:
    """Deal a planned run out to nodes of so many bytes, by a setting of it.

    `replan` plans the same run with some other settings: a node's share is planned at its size.
    """
    if not 0 < node < _MOST:
        raise UsageError("--nodes: give the memory of one node, such as 24GiB")
    ledger, readings = with_exchange(whole.ledger), whole.readings
    assert readings is not None
    if whole.device is not None or readings.trial is not None:
        raise UsageError(
            "--nodes deals out runs of known libraries and of specs, on the CPU: describe this one "
            "in a spec (run.toml), and leave out --device"
        )
    knob = knob or dealt_knob(ledger)
    if not knob:
        raise UsageError("no row of this run grows with a setting: there is nothing to deal out")
    units = ledger.knobs[knob]
    about = largest_share(ledger, readings, knob, node)
    found = None
    if about:
        one = replan({knob: about}) if about < units else whole
        assert one.readings is not None
        found = nodes_plan(with_exchange(one.ledger), one.readings, knob, units, node)
    if found is None:
        raise UsageError(
            f"a node of {format_bytes(node)} does not hold this run with {knob}=1: "
            "give larger nodes, or make the rest of the run smaller"
        )
    return replace(found, notes=(_PAPER, *found.notes))
