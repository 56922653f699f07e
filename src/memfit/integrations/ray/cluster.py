"""The cluster that is there: connecting to it, its nodes, and its actors with their demands."""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from memfit.errors import MissingExtra, UsageError, one_line

_OLDEST = (2, 50)
_REACHED_SECONDS = 5.0
_GROUP = re.compile(r"memory(_group_[0-9a-f]+)?")  # of a placement group; others name its bundles
_HEAD = "node:__internal_head__"
_NO_CLUSTER = (
    "{why}: start one with `ray start --head`, and set RAY_ADDRESS=HOST:PORT if it is not on this "
    "machine alone"
)


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node that is in the cluster; `memory` is what Ray may give out of it."""

    id: str
    address: str
    memory: int
    is_head: bool

    @property
    def name(self) -> str:
        return f"{self.address} {self.id[:6]}"


@dataclass(frozen=True, kw_only=True)
class Actor:
    """A living actor: its process, and the memory that it demands."""

    id: str
    pid: int
    node: str
    name: str
    demand: int
    group: str  # its placement group


def imported() -> Any:
    """Ray itself, of a version that is known."""
    try:
        version = metadata.version("ray")
    except metadata.PackageNotFoundError:
        raise MissingExtra("this needs Ray: pip install 'memfit[ray]'") from None
    found = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if found < _OLDEST:
        wanted = ".".join(map(str, _OLDEST))
        raise UsageError(
            f"Ray {version} is too old: memfit needs {wanted} or newer, on all nodes alike: "
            "pip install -U 'memfit[ray]'"
        )
    import ray

    return ray


@contextmanager
def connected() -> Iterator[Any]:
    """Ray, connected to the cluster that is there; it is left again, unless somebody was in it."""
    ray = imported()
    if ray.is_initialized():
        yield ray
        return
    address = _address()
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        _have_it_silent()
    except Exception as error:  # noqa: BLE001 - Ray raises errors of any kind
        raise UsageError(
            _NO_CLUSTER.format(why=f"no Ray cluster answers at {address} ({one_line(error)})")
        ) from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _have_it_silent() -> None:
    """What Ray says of nodes that leave goes to standard output, whatever it was asked: only
    results go there."""
    from ray._private import worker

    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = lambda *args, **named: None


def _address() -> str:
    """Where the cluster is, which answers there: Ray itself would wait for minutes."""
    given = os.environ.get("RAY_ADDRESS", "").strip()
    if "://" in given:
        raise UsageError(
            f"RAY_ADDRESS={given}: memfit works from a node of the cluster itself: give its "
            "HOST:PORT, as `ray start --head` prints it"
        )
    address = _as_ray_says(given or "auto")
    if not address:
        raise UsageError(_NO_CLUSTER.format(why="no Ray cluster is on this machine"))
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _REACHED_SECONDS).close()
        _check_health(address)
    except (OSError, ValueError, OverflowError, RuntimeError) as error:
        raise UsageError(
            _NO_CLUSTER.format(why=f"no Ray cluster answers at {address} ({one_line(error)})")
        ) from None
    return address


def _as_ray_says(given: str) -> str:
    """The address that Ray makes of what it is given; empty where it finds no cluster here."""
    try:
        from ray._private.services import canonicalize_bootstrap_address
    except ImportError:
        return given
    try:
        return canonicalize_bootstrap_address(given) or ""
    except ConnectionError:
        return ""
    except ValueError:
        return given


def _check_health(address: str) -> None:
    """Refuse what is no cluster, or one of another version."""
    try:
        from ray._raylet import check_health
    except ImportError:
        return
    if not check_health(address, timeout=_REACHED_SECONDS):
        raise ConnectionError("what answers there is not Ray's")


def nodes() -> list[Node]:
    """All nodes that are alive, the head first."""
    import ray

    found = [
        Node(
            id=told["NodeID"],
            address=told["NodeManagerAddress"],
            memory=int(told["Resources"].get("memory", 0)),
            is_head=_HEAD in told["Resources"],
        )
        for told in ray.nodes()
        if told["Alive"]
    ]
    return sorted(found, key=lambda node: (not node.is_head, node.address, node.id))


def largest_node() -> int:
    """The memory of the largest node."""
    return max((node.memory for node in nodes()), default=0)


def actors() -> list[Actor]:
    """All actors that live."""
    with _own_tables() as (tables, kinds):
        found = map(kinds.ActorTableData.FromString, tables.get_actor_table(None, None))
        return [_actor(told) for told in found if told.state == kinds.ActorTableData.ALIVE]


def drivers() -> dict[str, list[int]]:
    """The programs that use the cluster, but this one: their processes by node."""
    found: dict[str, list[int]] = {}
    with _own_tables() as (tables, kinds):
        jobs = tables.get_job_table(
            skip_submission_job_info_field=True, skip_is_running_tasks_field=True
        )
        for told in map(kinds.JobTableData.FromString, jobs):
            if not told.is_dead and told.driver_pid != os.getpid():
                found.setdefault(told.driver_address.node_id.hex(), []).append(told.driver_pid)
    return found


@contextmanager
def _own_tables() -> Iterator[tuple[Any, Any]]:
    """Ray's own tables, and the kinds of their rows: it tells demands to its dashboard alone, or
    to who asks here."""
    try:
        from ray._private.state import state
        from ray.core.generated import gcs_pb2

        yield state._connect_and_get_accessor(), gcs_pb2
    except (ImportError, AttributeError, TypeError) as error:
        raise UsageError(
            f"this version of Ray keeps its tables elsewhere ({one_line(error)}): use the one of "
            "pip install 'memfit[ray]'"
        ) from None


def _actor(told: Any) -> Actor:
    demands = [n for key, n in told.required_resources.items() if _GROUP.fullmatch(key)]
    return Actor(
        id=told.actor_id.hex(),
        pid=told.pid,
        node=told.address.node_id.hex(),
        name=told.class_name.rpartition(".")[2] or told.name,
        demand=int(max(demands, default=0)),
        group=told.placement_group_id.hex(),
    )
