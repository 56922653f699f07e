"""Sweeps, views and studies on three real nodes: measured there, and nothing is left behind."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memfit.measure.kernel import proc
from memfit.units import MIB
from tests.integrations.ray.conftest import NEEDS_RAY, RealCluster, real_cluster

pytestmark = [NEEDS_RAY, pytest.mark.slow, pytest.mark.timeout(400)]

HOLD = "import time; held = bytearray({n} << 20); time.sleep(SECONDS)"
MARK = "memfit_on_nodes"  # in the words of every run, so that those left over are found
PROGRAMS = Path(__file__).parent / "programs"


def held_by(seconds: float) -> list[str]:
    return [sys.executable, "-c", HOLD.replace("SECONDS", str(seconds)), MARK]


def left_over() -> list[str]:
    commands = map(proc.command, proc.processes())
    return [c for c in commands if c.endswith(MARK) and "memfit sweep" not in c and "-m" not in c]


def points(text: str) -> Iterator[tuple[int, str, float]]:
    for point in json.loads(text)["points"]:
        yield point["value"], point["outcome"], point["peak_bytes"] / MIB


def same(one: str, other: str) -> bool:
    """The same values and ends, and peaks within a MiB: what a Python takes more or less."""
    pairs = list(zip(points(one), points(other), strict=True))
    return all(a[:2] == b[:2] for a, b in pairs) and all(
        a[2] == pytest.approx(b[2], abs=1) for a, b in pairs if a[1] == "done"
    )


def sweep_words(seconds: float, values: str, *engine: str) -> list[str]:
    words = ["sweep", *engine, "--over", f"n={values}", "--limit", "300MiB", "--format", "json"]
    return [*words, "--", *held_by(seconds)]


def test_a_sweep_has_the_same_table_as_alone(cluster: RealCluster) -> None:
    there = cluster.memfit(*sweep_words(0.5, "10,40,400,800", "--engine", "ray"))
    assert there.returncode == 0, there.stderr
    alone = cluster.memfit(*sweep_words(0.5, "10,40,400,800"))
    assert same(there.stdout, alone.stdout)
    assert [value for value, _, _ in points(there.stdout)] == [10, 40, 400]
    assert not left_over()


def test_a_limit_that_no_node_has_is_refused(cluster: RealCluster) -> None:
    words = ("sweep", "--engine", "ray", "--over", "n=1,2", "--limit", "64GiB", "--", "true", "{n}")
    done = cluster.memfit(*words)
    assert done.returncode == 2 and not done.stdout
    assert "no node of the cluster has 64.0 GiB" in done.stderr


def test_a_sweep_outlives_a_node_and_one_that_was_killed_goes_on(tmp_path: Path) -> None:
    with real_cluster() as own:
        words = sweep_words(4, "10,20,30,40,50,60", "--engine", "ray")
        begun = own.begin("-m", "memfit", *words)
        assert begun.stderr is not None
        begun.stderr.readline()  # the first run is done
        begun.kill()
        begun.communicate()
        again = own.begin("-m", "memfit", *words)
        assert again.stderr is not None
        assert "going on after" in again.stderr.readline()
        time.sleep(3)
        own.kill_node()
        table, said = again.communicate(timeout=200)
        assert again.returncode == 0, said
        found = list(points(table))
        assert [value for value, _, _ in found] == [10, 20, 30, 40, 50, 60]
        assert all(outcome == "done" for _, outcome, _ in found)
        alone = own.memfit(*sweep_words(0.5, "10,20,30,40,50,60"))
        assert same(table, alone.stdout)
    assert not left_over()


def test_a_view_shows_each_page_once_and_who_is_above_demand(cluster: RealCluster) -> None:
    program = cluster.begin(str(PROGRAMS / "actors.py"))
    assert program.stdout is not None
    assert program.stdout.readline().strip() == "ready"
    done = cluster.memfit("watch", "--ray", "--once", "--format", "json")
    program.terminate()
    program.communicate()
    assert done.returncode == 3, done.stderr  # a target is missed
    told = json.loads(done.stdout)
    rows = {row["name"]: row["bytes"] for row in told["components"]}
    assert sum(rows.values()) == told["pss_bytes"]
    assert told["pss_bytes"] == sum(process["pss_bytes"] for process in told["processes"])
    stores = [size for name, size in rows.items() if name.endswith(".object_store")]
    assert 40 * MIB <= sum(stores) <= 3 * 40 * MIB + MIB  # once on each node that has it
    assert any("driver actors.py" in process["name"] for process in told["processes"])
    met = {target["name"].split()[0]: target["met"] for target in told["targets"]}
    assert met == {"Modest": True, "Greedy": False}


@pytest.mark.torch
def test_trials_of_tune_demand_their_plan_and_their_peaks_are_recorded(
    cluster: RealCluster, tmp_path: Path
) -> None:
    done = cluster.python(str(PROGRAMS / "study.py"), str(tmp_path), timeout=380)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    refused = told.pop("16384")
    assert refused["refused"] and not refused["called"]
    assert "the largest node has 2.00 GiB" in refused["error"]
    assert "rollout_buffer.observations" in refused["error"]
    for trial in told.values():
        assert trial["called"] and not trial["error"] and not trial["over_demand"]
        assert 0.75 * trial["demand_bytes"] < trial["peak_bytes"] <= trial["demand_bytes"]
        assert trial["written"]["peak_bytes"] == trial["peak_bytes"]
    rollout = 896 * 256 * 1024  # what 1,024 steps have more than 128
    more = told["1024"]["peak_bytes"] - told["128"]["peak_bytes"]
    assert rollout <= more <= 1.5 * rollout


@pytest.mark.torch
def test_optimize_tries_fixes_on_the_nodes(cluster: RealCluster, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "from stable_baselines3 import DQN\n"
        'DQN("MlpPolicy", "CartPole-v1", buffer_size=400_000, learning_starts=100).learn(1000)\n'
    )
    words = ("optimize", str(script), "--engine", "ray", "--quick", "--format", "json")
    done = cluster.memfit(*words, "--select", "MF0", "--safe-only", timeout=380)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["peak_bytes"] > 100 * MIB
    assert any("nodes of a cluster" in note for note in told["notes"])


def test_no_process_of_memfit_is_left_on_the_nodes(cluster: RealCluster) -> None:
    """After all of the above: watchers and workers of ended programs are gone."""
    raylets = [p for p in proc.processes() if "/raylet " in proc.command(p)[:400]]
    until = time.monotonic() + 60
    commands: list[str] = []
    while time.monotonic() < until:
        commands = [proc.command(below) for pid in raylets for below in proc.descendants(pid)]
        if not any("NodeWatcher" in command or "_there" in command for command in commands):
            return
        time.sleep(1)
    raise AssertionError(commands)
