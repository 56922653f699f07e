"""Frames of a live view of a cluster: its nodes, what Ray runs there, and who is above demand."""

from __future__ import annotations

import time
from collections.abc import Sequence

from memfit.analyses.forecast import forecast
from memfit.analyses.targets import judge
from memfit.errors import UsageError
from memfit.integrations.ray.cluster import Actor, Node, actors, drivers, nodes
from memfit.integrations.ray.node_watcher import DRIVERS, RAY, WORK, NodeWatcher, Seen, Watchers
from memfit.model import Frame, Limit, Reading, Target, Targets, Watched
from memfit.units import format_bytes

_KEPT = 4000
_SHORT = 6  # of an id, as far as people need it
_NOTE = (
    "a demand is what Ray sets aside for an actor; it does not hold it to that. Pages of the "
    "object store and of libraries are counted once on each node"
)


class ClusterView:
    """A cluster that is connected to, looked at by a watcher on each node."""

    def __init__(self, watchers: Watchers, limit: int | None, aims: Targets) -> None:
        self._watchers = watchers
        self._aims = aims
        self._given = Limit.given(limit)
        self._readings: list[Reading] = []
        self._started = time.monotonic()
        self._left: dict[str, None] = {}
        self._known: dict[str, Node] = {}

    def frame(self) -> Frame:
        """The cluster as it is now."""
        alive = nodes()
        self._left |= dict.fromkeys(n.name for i, n in self._known.items() if i not in _ids(alive))
        self._known |= {node.id: node for node in alive}
        if not alive:
            raise UsageError("no node is left in the cluster: start one with `ray start`")
        self._watchers.on(alive)
        using = drivers()
        found = {
            node.id: self._watchers.ask(
                node.id, "look", head=node.is_head, drivers=using.get(node.id, [])
            )
            for node in alive
        }
        seen: dict[str, Sequence[Seen]] = {id_: told for id_, told in found.items() if told}
        living = [actor for actor in actors() if actor.name != NodeWatcher.__name__]
        total = sum(each.pss for told in seen.values() for each in told)
        limit = self._given or Limit(
            bytes=max(1, sum(node.memory for node in alive)),
            source=f"memory of {len(alive)} {'node' if len(alive) == 1 else 'nodes'}",
        )
        here = [node for node in alive if node.id in seen]
        processes = [one for node in here for one in _processes(node, seen[node.id], living)]
        self._readings.append(
            Reading(
                seconds=time.monotonic() - self._started,
                bytes=total,
                processes=len(processes),
                threads=sum(each.threads for told in seen.values() for each in told),
            )
        )
        if len(self._readings) > _KEPT:
            del self._readings[: _KEPT // 2 : 2]
        notes = [f"{name} has left" for name in reversed(self._left)]
        notes += [f"{node.name} does not answer" for node in alive if node.id not in seen]
        return Frame(
            title=f"Ray cluster, {', '.join(node.name for node in alive)}",
            bytes=total,
            limit=limit,
            processes=tuple(processes),
            rows=tuple(row for node in here for row in _rows(node, seen[node.id])),
            readings=tuple(self._readings),
            forecast=forecast(self._readings, limit.bytes),
            targets=(*judge(self._aims, processes, total), *_targets(here, seen, living)),
            notes=(*notes, _NOTE),
        )


def _ids(alive: Sequence[Node]) -> set[str]:
    return {node.id for node in alive}


def _processes(node: Node, seen: Sequence[Seen], living: Sequence[Actor]) -> list[Watched]:
    """The raylet of a node, and below it actors with their ids, workers and Ray's own."""
    names = {actor.pid: actor for actor in living if actor.node == node.id}
    found = []
    for each in sorted(seen[1:], key=lambda one: -one.pss):
        actor = names.get(each.pid)
        name = f"{actor.name} {actor.id[:_SHORT]}" if actor else each.name
        if actor and actor.demand:
            name += f", demands {format_bytes(actor.demand)}"
        found.append(
            Watched(pid=each.pid, depth=1, name=name, bytes=each.pss, threads=each.threads)
        )
    first = seen[0]
    title = f"node {node.name}: raylet"
    top = Watched(pid=first.pid, depth=0, name=title, bytes=first.pss, threads=first.threads)
    return [top, *found]


def _rows(node: Node, seen: Sequence[Seen]) -> list[tuple[str, int]]:
    """What a node holds: each page once, so that rows add up to its PSS."""
    store, files = sum(each.store for each in seen), sum(each.files for each in seen)
    rows = dict.fromkeys((WORK, DRIVERS, RAY), 0)
    for each in seen:
        rows[each.part] += each.pss - each.store - each.files
    rows |= {"object_store": store, "libraries": files}
    return [(f"node-{node.id[:_SHORT]}.{name}", amount) for name, amount in rows.items() if amount]


def _targets(
    here: Sequence[Node], seen: dict[str, Sequence[Seen]], living: Sequence[Actor]
) -> list[Target]:
    """Actors that demand memory beside what they hold, without the object store."""
    found = []
    for node in here:
        by_pid = {each.pid: each for each in seen[node.id]}
        for actor in living:
            each = by_pid.get(actor.pid)
            if actor.node != node.id or not actor.demand or each is None:
                continue
            held = each.pss - each.store
            found.append(
                Target(
                    name=f"{actor.name} {actor.id[:_SHORT]} on {node.name}",
                    wanted=format_bytes(actor.demand),
                    found=format_bytes(held),
                    met=held <= actor.demand,
                )
            )
    return found
