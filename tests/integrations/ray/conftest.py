"""A cluster for the tests that want one; without Ray they are skipped."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from memfit.units import GIB

HERE = Path(__file__).parent
NEEDS_RAY = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="needs Ray: make test-ray installs it"
)
# It tells nobody that it is used, and is bound to loopback.
LOOPBACK = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


class RealCluster:
    """Three nodes of 2 GiB, and the environment of those who use them."""

    def __init__(self, process: subprocess.Popen[str], environment: Mapping[str, str]) -> None:
        self._process = process
        address = self._heard("address ")
        self.environment = {**environment, "RAY_ADDRESS": address}

    def kill_node(self) -> None:
        """Have one node killed as it stands; the head is the last that goes."""
        assert self._process.stdin is not None
        self._process.stdin.write("kill\n")
        self._process.stdin.flush()
        self._heard("killed")

    def memfit(self, *words: str, timeout: float = 240.0) -> subprocess.CompletedProcess[str]:
        """Run the command line."""
        return self.python("-m", "memfit", *words, timeout=timeout)

    def python(self, *words: str, timeout: float = 240.0) -> subprocess.CompletedProcess[str]:
        """Run a program that uses the cluster."""
        return subprocess.run(
            [sys.executable, *words],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """The same, without waiting for its end."""
        return subprocess.Popen(
            [sys.executable, *words],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _heard(self, word: str) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(word):
                return line.removeprefix(word).strip()
        raise AssertionError(f"the cluster has ended before it said {word!r}")


@contextmanager
def real_cluster(nodes: int = 3, memory: int = 2 * GIB) -> Iterator[RealCluster]:
    """A cluster, until it is left."""
    folder = tempfile.mkdtemp(prefix="r", dir="/tmp")  # names of sockets must be short
    environment = {**os.environ, **LOOPBACK, "RAY_TMPDIR": folder, "XDG_CACHE_HOME": folder}
    process = subprocess.Popen(
        [sys.executable, str(HERE / "cluster_process.py"), str(nodes), str(memory)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield RealCluster(process, environment)
    finally:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        try:
            process.wait(60)
        finally:
            process.kill()
            process.stdout.close()
            process.wait()
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def cluster() -> Iterator[RealCluster]:
    """One for all tests that leave it as it is."""
    with real_cluster() as made:
        yield made
