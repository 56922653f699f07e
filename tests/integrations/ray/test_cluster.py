"""Clusters that are not there, too old, or somewhere else: one message, exit code 2."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from importlib import metadata

import pytest

from memfit.errors import MissingExtra, UsageError
from memfit.integrations.ray import cluster
from tests.integrations.ray.conftest import LOOPBACK, NEEDS_RAY

SWEEP = ("sweep", "--engine", "ray", "--over", "n=1,2", "--", "true", "{n}")


def memfit(*words: str, address: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "memfit", *words],
        env={**os.environ, **LOOPBACK, "RAY_ADDRESS": address},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_versions_that_are_too_old_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: "2.9.3")
    with pytest.raises(UsageError, match=r"Ray 2\.9\.3 is too old"):
        cluster.imported()


def test_ray_is_asked_for_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(MissingExtra, match=r"memfit\[ray\]"):
        cluster.imported()


@NEEDS_RAY
@pytest.mark.parametrize("words", [SWEEP, ("watch", "--ray", "--once")], ids=["sweep", "watch"])
def test_no_cluster_is_told_at_once(words: tuple[str, ...]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        done = memfit(*words, address=f"127.0.0.1:{free.getsockname()[1]}")
    assert done.returncode == 2 and not done.stdout
    assert "no Ray cluster answers" in done.stderr and "ray start --head" in done.stderr
    assert "Traceback" not in done.stderr


@NEEDS_RAY
@pytest.mark.parametrize("address", ["ray://127.0.0.1:10001", "nowhere", "127.0.0.1:many"])
def test_addresses_that_are_none_are_refused(address: str) -> None:
    done = memfit("watch", "--ray", "--once", address=address)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "RAY_ADDRESS" in done.stderr


def test_other_engines_are_refused() -> None:
    done = memfit("sweep", "--engine", "slurm", "--over", "n=1", "--", "true", "{n}", address="")
    assert done.returncode == 2 and "memfit knows ray" in done.stderr


def test_a_cluster_is_watched_by_itself() -> None:
    done = memfit("watch", "--ray", "4711", address="")
    assert done.returncode == 2 and "--ray shows a whole cluster" in done.stderr
