"""Looks at the processes of one node, from a process of its own there that holds no resources."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from memfit.integrations.ray.cluster import Node
from memfit.measure.kernel import proc
from memfit.measure.record.sampling import Sampler

_SESSION = re.compile(r"session_[0-9_-]+")
_TITLE = re.compile(r"ray::(\w+)")
_RAYS_OWN = ("IDLE", "DashboardAgent", "RuntimeEnvAgent", "NodeWatcher")
WORK, DRIVERS, RAY = "actors_and_tasks", "drivers", "ray"
_PLASMA = b"plasma"
_PSS = {b"Pss": "pss"}
_LOOK_SECONDS, _ALONE_SECONDS = 0.05, 0.5
_ANSWER_SECONDS = 60.0  # a process of Ray may first have to start


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One process of a node: its PSS, and what of that is the object store and library pages."""

    pid: int
    name: str
    pss: int
    store: int
    files: int
    threads: int
    part: str  # of the node: who it works for


@dataclass(frozen=True, kw_only=True)
class _Group(proc.Tree):
    """Processes that belong together, with all below them."""

    others: list[int] = field(default_factory=list)

    def members(self) -> list[int]:
        mains = [self.main, *self.others]
        return list(dict.fromkeys(p for pid in mains for p in (pid, *proc.descendants(pid))))


class _Followed:
    """The peak of a group, and what it lacks because others map the same library pages."""

    def __init__(self, pid: int) -> None:
        self.group = _Group(main=pid)
        self.sampler = Sampler(self.group)
        self.peak = self.outside = 0
        self._next = 0.0

    def look(self) -> None:
        self.peak = max(self.peak, self.sampler.sample(time.monotonic()).bytes)
        if time.monotonic() >= self._next:
            self.outside = max(self.outside, self.group.memory().outside)
            self._next = time.monotonic() + _ALONE_SECONDS


class NodeWatcher:
    """An actor of Ray: one on each node."""

    def __init__(self) -> None:
        self._raylet = os.getppid()
        self._followed: dict[str, _Followed] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._sample, daemon=True).start()

    def look(self, *, head: bool, drivers: Sequence[int]) -> list[Seen]:
        """The processes that Ray has here, its own among them, and programs that use it."""
        pids = [self._raylet, *proc.descendants(self._raylet)]
        if head:
            pids += self._services({*pids, *drivers})
        pids += [pid for pid in drivers if pid not in pids]
        return [seen for pid in pids if (seen := self._seen(pid, drivers)) is not None]

    def follow(self, key: str, pids: Sequence[int]) -> None:
        """Sample these processes together from now on, whatever else has this key already."""
        with self._lock:
            for pid in pids:
                if key not in self._followed:
                    self._followed[key] = _Followed(pid)
                group = self._followed[key].group
                if pid != group.main and pid not in group.others:
                    group.others.append(pid)

    def peak(self, key: str, *, over: bool) -> tuple[int, int]:
        """The most that they held, and their part of shared library pages that is others'."""
        with self._lock:
            found = self._followed.get(key)
            if found is None:
                return 0, 0
            if over:
                del self._followed[key]
            else:
                found.look()
            return found.peak, found.outside

    def _sample(self) -> None:
        while True:
            started = time.thread_time()
            with self._lock:
                for followed in self._followed.values():
                    followed.look()
            # At most a tenth of a processor, however many there are.
            time.sleep(max(_LOOK_SECONDS, 10 * (time.thread_time() - started)))

    def _services(self, known: set[int]) -> list[int]:
        """Ray's processes of the head node that no raylet has started."""
        session = _SESSION.search(proc.command(self._raylet))
        if session is None:
            return []
        raylets = {pid for pid in proc.processes() if "/raylet " in proc.command(pid)[:400]}
        below = {below for raylet in raylets for below in proc.descendants(raylet)}
        return [
            pid
            for pid in proc.processes()
            if pid not in known | raylets | below and session.group() in proc.command(pid)
        ]

    def _seen(self, pid: int, drivers: Sequence[int]) -> Seen | None:
        found = proc.rollup(pid)
        if found is None:
            return None
        command = proc.command(pid)
        title = _TITLE.match(command)
        name = title.group(1) if title else _short(command)
        return Seen(
            pid=pid,
            name=f"driver {name}" if pid in drivers else name,
            pss=found.pss,
            store=_store(pid) if found.pss_shmem else 0,
            files=found.pss_files,
            threads=proc.threads(pid),
            part=_part(pid in drivers, title.group(1) if title else ""),
        )


def _part(driver: bool, title: str) -> str:
    if driver:
        return DRIVERS
    return WORK if title and title not in _RAYS_OWN else RAY


def _store(pid: int) -> int:
    """A process's part of the object store."""
    with suppress(OSError):
        maps = proc.read_smaps(f"/proc/{pid}/smaps", _PSS)
        return sum(amounts.get("pss", 0) for line, amounts in maps if _PLASMA in line)
    return 0


def _short(command: str) -> str:
    """The program of a command, without where it lies."""
    words = [word for word in command.split() if not word.startswith("-")]
    scripts = [word for word in words if word.endswith(".py")]
    return os.path.basename(scripts[0] if scripts else words[0] if words else "")  # noqa: PTH119


class Watchers:
    """A watcher on each node that is alive; nodes come and go."""

    def __init__(self) -> None:
        self._actors: dict[str, Any] = {}

    def on(self, nodes: Sequence[Node]) -> Mapping[str, Any]:
        """The watchers of these nodes; they are started where there are none yet."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        for gone in self._actors.keys() - {node.id for node in nodes}:
            del self._actors[gone]
        for node in nodes:
            if node.id not in self._actors:
                here = NodeAffinitySchedulingStrategy(node.id, soft=False)
                made = ray.remote(num_cpus=0)(NodeWatcher)
                self._actors[node.id] = made.options(scheduling_strategy=here).remote()
        return self._actors

    def ask(self, node: str, call: str, *args: Any, **named: Any) -> Any:
        """What a watcher answers; None where its node has left."""
        import ray

        if node not in self._actors:
            return None
        asked = getattr(self._actors[node], call).remote(*args, **named)
        try:
            return ray.get(asked, timeout=_ANSWER_SECONDS)
        except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError):
            self._actors.pop(node, None)
            return None

    def end(self) -> None:
        """Leave nothing behind."""
        import ray

        for actor in self._actors.values():
            with suppress(Exception):  # the cluster may be gone
                ray.kill(actor)
        self._actors.clear()


@contextmanager
def watchers() -> Iterator[Watchers]:
    """Watchers that are gone in the end."""
    made = Watchers()
    try:
        yield made
    finally:
        made.end()
