"""`watch --ray`: frames of the cluster that is there, as long as somebody looks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from memfit.model import Targets

if TYPE_CHECKING:
    from memfit.integrations.ray.cluster_view import ClusterView


@contextmanager
def watch_cluster(limit: int | None = None, aims: Targets | None = None) -> Iterator[ClusterView]:
    """A view of the cluster; its watchers, one process on each node, go with it."""
    from memfit.integrations.ray.cluster import connected

    with connected():
        from memfit.integrations.ray.cluster_view import ClusterView
        from memfit.integrations.ray.node_watcher import watchers

        with watchers() as made:
            yield ClusterView(made, limit, aims or Targets())
