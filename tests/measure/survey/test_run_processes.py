"""Processes that a run started are told by kind, with the private pages that the kernel counts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MIB = 2**20
# A run that starts processes, each of which holds 20 MiB once it says so.
PROGRAM = """
import json, multiprocessing, os, subprocess, sys, time
from memfit.measure.survey.run_processes import read_others, read_workers
from memfit.model.json_loader import to_json

def hold(ready):
    held = bytearray(b"x") * (20 * 2**20)
    ready.put(1)
    time.sleep(60)

HOLD = "import time; held = bytearray(b'x') * (20 * 2**20); print(flush=True); time.sleep(60)"
if __name__ == "__main__":
    started = []
    def start(method, count):
        context = multiprocessing.get_context(method)
        ready = context.Queue()
        some = [context.Process(target=hold, args=(ready,), daemon=True) for _ in range(count)]
        [one.start() for one in some]
        [ready.get() for _ in some]
        started.extend(some)
        return [one.pid for one in some]
    def program():
        other = subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE)
        other.stdout.readline()
        started.append(other)
    %s
    print(json.dumps(to_json(found)))
    [one.kill() for one in started]
"""


def found(folder: Path, script: str) -> Any:
    file = folder / "run.py"
    file.write_text(PROGRAM % script)
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, timeout=60, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("script", "kinds"),
    [
        ("start('fork', 3)", {"forks": 3}),
        ("start('spawn', 2)", {"helpers": 1, "spawned": 2}),
        ("start('forkserver', 2)", {"forks": 2, "helpers": 2}),
        ("program(); start('fork', 1)", {"forks": 1, Path(sys.executable).name: 1}),
        ("pass", {}),
    ],
)
def test_processes_are_told_by_kind(script: str, kinds: dict[str, int], tmp_path: Path) -> None:
    told = {one["name"]: one for one in found(tmp_path, f"{script}; found = read_others(())")}
    assert {name: one["count"] for name, one in told.items()} == kinds
    for name, one in told.items():
        assert one["for_envs"] is (name != "helpers")
        if name != "helpers":
            assert one["private_bytes"] > one["count"] * 20 * MIB
            assert one["private_bytes"] < one["count"] * 32 * MIB


def test_known_workers_and_their_helpers_are_no_others(tmp_path: Path) -> None:
    script = "pids = start('forkserver', 2); program(); "
    told = found(tmp_path, script + "found = [read_workers(pids), *read_others(pids)]")
    assert told[0]["started"] == 2
    assert 20 * MIB < told[0]["each_bytes"] < 32 * MIB
    assert told[0]["shared_bytes"] > MIB
    assert [one["name"] for one in told[1:]] == [Path(sys.executable).name]
