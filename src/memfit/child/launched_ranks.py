"""What a launcher of equal processes starts beside the first of them, which is tried.

The others are forks from before the program begins: they get the same settings, run the same
program in full, and tell nothing. In place of the launcher, a process that has loaded it waits.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from typing import NoReturn

# The name of a process's row, and how it came to be, by pid.
Started = dict[int, tuple[str, str]]

_WAITS = "import signal, torch.distributed.run; signal.pause()"


def start_ranks(count: int) -> Started:
    """Become the first of so many processes, with the others beside it; a fork gets nothing."""
    port = _free_port()
    shared = {
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        "ROLE_WORLD_SIZE": str(count),
        "GROUP_RANK": "0",
        "GROUP_WORLD_SIZE": "1",
        "ROLE_NAME": "default",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        "TORCHELASTIC_RUN_ID": "plan",
        "TORCHELASTIC_USE_AGENT_STORE": "False",  # the first process keeps the store
    }
    launcher = subprocess.Popen([sys.executable, "-c", _WAITS])
    os.environ.update(shared)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # the only one that a plan has
    if count > 1:  # as the launcher does
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    started: Started = {launcher.pid: ("launcher", "the launcher")}
    for rank in range(1, count):
        pid = os.fork()
        if not pid:
            _be(rank)
            return {}
        started[pid] = ("ranks", "the launcher's processes beside the first")
    _be(0)
    return started


def hold_still() -> NoReturn:
    """Wait for the end of the plan."""
    while True:
        signal.pause()


def _be(rank: int) -> None:
    os.environ.update({name: str(rank) for name in ("RANK", "LOCAL_RANK", "ROLE_RANK")})


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
