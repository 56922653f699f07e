"""A callback of Tune that records the true peak of each trial, and marks those above demand."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ray.tune import Callback

from memfit.errors import one_line
from memfit.integrations.ray.cluster import actors, nodes
from memfit.integrations.ray.node_watcher import Watchers
from memfit.integrations.ray.planned_trials import REFUSED_BYTES
from memfit.units import format_bytes

FILE = "memory.json"
_LOOK_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class TrialMemory:
    """What a trial took.

    `peak_bytes` is the most that its processes held, library pages in full, as if it were alone;
    `pss_bytes` the same by PSS, where others on the node have their part of these. Processes on
    several nodes are added up by their peaks. A trial that never had a reading has no peak.
    """

    trial: str
    demand_bytes: int
    peak_bytes: int = 0
    pss_bytes: int = 0
    over_demand: bool = False
    refused: bool = False
    ended: str = ""  # as Tune says


def _harmless(hook: Callable[..., None]) -> Callable[..., None]:
    """What goes wrong while looking is said, once, and ends no study."""

    @functools.wraps(hook)
    def kept(self: MemoryCallback, *args: Any, **named: Any) -> None:
        try:
            hook(self, *args, **named)
        except Exception as error:  # noqa: BLE001 - whatever Ray raises where nodes leave
            text = f"memory of trials could not be read: {one_line(error)}"
            if text not in self.problems:
                self.problems.append(text)
                self._say(text)

    return kept


class MemoryCallback(Callback):
    """Put it into `tune.RunConfig(callbacks=[...])`.

    `records` has a `TrialMemory` for each trial, as soon as that has ended; the same is written to
    `memory.json` in the trial's folder. A watcher on each node looks from outside the trials.
    """

    def __init__(self, say: Callable[[str], None] = lambda text: None) -> None:
        self.records: dict[str, TrialMemory] = {}
        self.problems: list[str] = []
        self._say = say
        self._watchers = Watchers()
        self._ids: dict[str, str] = {}  # of running trials' actors
        self._groups: dict[str, str] = {}
        self._followed: dict[str, set[tuple[str, int]]] = {}
        self._next = 0.0

    # -- what Tune calls -------------------------------------------------------------------------

    @_harmless
    def setup(self, *args: Any, **info: Any) -> None:
        """Start the watchers, so that the first trial is seen from its beginning."""
        self._watchers.on(nodes())

    @_harmless
    def on_trial_start(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        actor = trial.temporary_state.ray_actor
        if actor is not None:
            self._ids[trial.trial_id] = actor._actor_id.hex()
            self._follow()

    @_harmless
    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        if self._ids and time.monotonic() >= self._next:
            self._follow()

    @_harmless
    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        self._record(trial, "complete")

    @_harmless
    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        self._record(trial, "error")

    @_harmless
    def on_experiment_end(self, trials: list[Any], **info: Any) -> None:
        for trial in trials:  # those that were stopped with the experiment
            if trial.trial_id in self._ids:
                self._record(trial, "stopped")
        self._watchers.end()

    def get_state(self) -> dict[str, Any]:
        """The records, for an experiment that is restored."""
        return {"records": [asdict(record) for record in self.records.values()]}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take them up again."""
        found = [TrialMemory(**record) for record in state.get("records", [])]
        self.records = {record.trial: record for record in found}

    def __getstate__(self) -> dict[str, Any]:
        kept = {"_watchers": Watchers(), "_ids": {}, "_groups": {}, "_followed": {}}
        return {**self.__dict__, **kept}

    # -- looking ---------------------------------------------------------------------------------

    def _follow(self) -> None:
        """Tell the watchers which processes belong to which trial, actors of its own among them."""
        living = actors()
        watching = self._watchers.on(nodes())
        by_id = {actor.id: actor for actor in living}
        for trial, id_ in self._ids.items():
            main = by_id.get(id_)
            if main is None:
                continue
            belong = [main]
            if main.group:
                belong += [one for one in living if one.group == main.group and one is not main]
            known = self._followed.setdefault(trial, set())
            for actor in belong:
                if (actor.node, actor.pid) not in known and actor.node in watching and actor.pid:
                    known.add((actor.node, actor.pid))
                    watching[actor.node].follow.remote(trial, [actor.pid])
        self._next = time.monotonic() + _LOOK_SECONDS

    def _record(self, trial: Any, ended: str) -> None:
        demand = int(trial.placement_group_factory.required_resources.get("memory", 0))
        self._ids.pop(trial.trial_id, None)
        places = {node for node, _ in self._followed.pop(trial.trial_id, set())}
        peak = pss = 0
        for node in places:
            told = self._watchers.ask(node, "peak", trial.trial_id, over=True) or (0, 0)
            pss, peak = pss + told[0], peak + sum(told)
        found = TrialMemory(
            trial=trial.trial_id, demand_bytes=demand, peak_bytes=peak, pss_bytes=pss, ended=ended
        )
        if demand == REFUSED_BYTES:
            found = replace(found, refused=True, demand_bytes=0)
        elif 0 < demand < peak:
            found = replace(found, over_demand=True)
        self.records[trial.trial_id] = found
        if found.over_demand:
            self._say(
                f"trial {trial.trial_id} held {format_bytes(peak)}, more than the "
                f"{format_bytes(demand)} that it demands"
            )
        with suppress(OSError):  # a full disk ends no trial
            Path(trial.local_path, FILE).write_text(json.dumps(asdict(found)) + "\n")
