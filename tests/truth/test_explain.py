"""An explanation beside what the kernel says, on processes of many kinds."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import memfit
from memfit.analyses.attribution import deal
from memfit.measure.live.inside_view import look_inside
from memfit.measure.live.process_tree import read_process
from memfit.model import Explanation, Layer
from tests.truth import kernel
from tests.truth.running import NAMES, running, seen_meanwhile

pytestmark = [pytest.mark.truth, pytest.mark.timeout(180)]

MIB = 2**20


def rows(explanation: Explanation) -> dict[str, int]:
    ledger = explanation.ledger
    return {c.name: ledger.bytes_of(c) for c in ledger.components}


def layer(explanation: Explanation, wanted: Layer, *, main: bool = True) -> int:
    processes = explanation.processes[:1] if main else explanation.processes[1:]
    return sum(p.bytes for view in processes for p in view.parts if p.layer is wanted)


SLOW = ("drone", "sb3_replay", "sb3_workers")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in NAMES]
)
def test_rows_add_up_to_what_the_kernel_says(name: str) -> None:
    with running(name) as process:
        with seen_meanwhile(process.pid) as seen:  # those that compute change while they are read
            explanation = memfit.explain(process.pid)
        total = sum(rows(explanation).values())
        low, high = min(seen), max(seen)
        assert 0.99 * low <= total <= 1.01 * high
        assert 0.99 * low <= explanation.pss_bytes <= 1.01 * high
        assert explanation.named_share >= 0.95
        assert process.poll() is None


def test_a_half_filled_buffer_shows_as_such() -> None:
    with running("numpy_half_filled") as process:
        explanation = memfit.explain(process.pid, inside=False)
        buffer = max(
            (c for c in explanation.ledger.components if c.name.startswith("blocks.")),
            key=explanation.ledger.bytes_of,
        )
        assert buffer.reserved is not None
        assert 200 * MIB <= buffer.reserved.evaluate({}) <= 204 * MIB
        assert 80 * MIB <= explanation.ledger.bytes_of(buffer) <= 84 * MIB
        assert layer(explanation, Layer.HEAP) >= 40 * 1000 * 1000  # 10,000 arrays of 4 KiB


def test_python_objects_are_told_from_arrays() -> None:
    with running("python_objects") as process:
        explanation = memfit.explain(process.pid)
        objects = layer(explanation, Layer.OBJECTS)
        # 200,000 dicts of 184 bytes, with a string of 54 and a number of 28 each.
        assert objects >= 200_000 * (184 + 54 + 28)
        assert objects >= 0.7 * explanation.pss_bytes


def test_forks_share_what_they_have_from_their_parent() -> None:
    with running("fork_shared") as process:
        explanation = memfit.explain(process.pid)
        assert len(explanation.processes) == 4
        assert explanation.pss_bytes <= (100 + 3 * 10 + 60) * MIB  # not 4 x 100
        alone = memfit.explain(process.pid, children=False)
        assert len(alone.processes) == 1
        assert alone.pss_bytes <= (100 / 4 + 40) * MIB


def test_shared_memory_is_named_with_who_shares_it() -> None:
    with running("shared_memory") as process:
        explanation = memfit.explain(process.pid)
        shared = {
            c.name: (explanation.ledger.bytes_of(c), c)
            for c in explanation.ledger.components
            if c.name.startswith("shared.")
        }
        amounts = sorted(amount for amount, _ in shared.values())
        assert amounts[-1] == 16 * MIB
        assert 8 * MIB <= amounts[-2] <= 9 * MIB
        _, named = next(v for k, v in shared.items() if k.startswith("shared.psm_"))
        assert named.reserved is not None and named.reserved.evaluate({}) == 32 * MIB
        assert str(process.pid) in named.evidence.where
        assert "mapped by 2 of" in named.evidence.where


def test_a_mapped_file_is_named() -> None:
    with running("mapped_file") as process:
        explanation = memfit.explain(process.pid)
        name, amount = next((n, b) for n, b in rows(explanation).items() if n.endswith(".prices"))
        assert name.startswith("files.")
        assert 32 * MIB <= amount <= 64 * MIB


@pytest.mark.parametrize("name", ["many_threads", "computing"])
def test_threads_are_found_with_their_stacks_and_pools(name: str) -> None:
    with running(name) as process:
        explanation = memfit.explain(process.pid)
        pools = {pool.name: pool for pool in explanation.main.pools}
        tasks = len(os.listdir(f"/proc/{process.pid}/task"))
        assert sum(pool.threads for pool in pools.values()) == tasks
        assert "Python" in pools, pools
        python = pools["Python"]
        assert python.threads == (23 if name == "many_threads" else 1)
        # Reserved is not resident: 8 MiB each, of which a few pages are there.
        assert python.reserved == python.threads * 8 * MIB
        assert python.threads * 4096 <= python.resident <= python.threads * 256 * 1024
        if name == "many_threads":
            assert layer(explanation, Layer.ARENAS) >= 15 * 200 * 8000 / 2
        else:
            assert pools["OpenMP"].threads >= 1


def test_huge_pages_are_counted() -> None:
    with running("hugepages") as process:
        explanation = memfit.explain(process.pid)
        wanted = sum(
            int(line.split()[1]) * 1024
            for line in Path(f"/proc/{process.pid}/smaps").read_text().splitlines()
            if line.startswith("AnonHugePages:")
        )
        assert explanation.huge_bytes == wanted


def test_a_rollout_that_never_ends_is_seen_to_grow() -> None:
    with running("endless_rollout") as process:
        time.sleep(1)
        explanation = memfit.explain(process.pid, seconds=1.5, inside=False)
        most = explanation.growth[0]
        assert most.name == "malloc.heap"
        assert most.bytes_per_second >= 100_000


def test_something_that_rests_does_not_grow() -> None:
    with running("torch_model") as process:
        explanation = memfit.explain(process.pid, seconds=0.5, inside=False)
        assert sum(g.bytes for g in explanation.growth if g.name.startswith("malloc")) == 0


@pytest.mark.parametrize(
    ("name", "holder", "low", "high"),
    [
        ("numpy_half_filled", "buffer", 80, 82),
        ("numpy_half_filled", "small[*]", 39, 40),
        ("hugepages", "block", 66, 67),
        ("torch_model", "optimizer exp_avg", 16, 17),
        ("held_graph", "loss graph", 55.9, 56.1),
        ("python_objects", "rows objects", 38, 39),
        ("many_threads", "kept[*][*]", 30, 31),
    ],
)
def test_holders_are_read_from_outside_in_seconds(
    name: str, holder: str, low: float, high: float
) -> None:
    """Of programs that nobody prepared: no listener, and no pause."""
    with running(name) as process:
        explanation = memfit.explain(process.pid)
        assert process.poll() is None
    inside = explanation.inside
    assert inside is not None and (inside.asked, inside.outside) == ((), (process.pid,))
    found = {h.path: h for h in inside.holders}
    assert low * MIB <= found[holder].bytes <= high * MIB
    assert sum(rows(explanation).values()) == pytest.approx(explanation.pss_bytes, rel=0.01)


def test_a_rollout_that_never_ends_is_named_from_outside() -> None:
    with running("endless_rollout") as process:
        time.sleep(1)
        explanation = memfit.explain(process.pid, seconds=1.5)
    most = explanation.growth[0]
    assert most.name == "explore().agent.trajectory[*][*]"
    assert most.bytes_per_second >= 100_000


@functools.cache
def inside_of(name: str, *, seconds: float = 0.0) -> Explanation:
    with running(name, sys.executable, "-m", "memfit", "run", "-q", "--no-file", "--") as process:
        child = kernel.recorded(process.pid)
        if seconds:
            time.sleep(1)
        return memfit.explain(child, seconds=seconds, wait=120.0)


def test_a_rollout_that_never_ends_is_named_by_its_holder() -> None:
    explanation = inside_of("endless_rollout", seconds=1.5)
    most = explanation.growth[0]
    assert most.name == "explore().agent.trajectory[*][*]"
    assert most.bytes_per_second >= 100_000


@pytest.mark.parametrize(
    ("name", "holder", "low", "high", "reserved"),
    [
        ("numpy_half_filled", "buffer", 80, 82, 200),
        ("numpy_half_filled", "small[*]", 39, 40, 39),
        ("hugepages", "block", 66, 67, 66),
        ("torch_model", "optimizer exp_avg", 16, 17, 16),
        pytest.param(
            *("sb3_replay", "model.replay_buffer.rewards", 0, 4, 3), marks=pytest.mark.slow
        ),
    ],
)
def test_arrays_are_named_with_what_of_them_is_resident(
    name: str, holder: str, low: int, high: int, reserved: int
) -> None:
    explanation = inside_of(name)
    assert explanation.inside is not None
    found = {h.path: h for h in explanation.inside.holders}[holder]
    assert low * MIB <= found.bytes <= high * MIB
    assert reserved * MIB <= found.reserved <= (reserved + 1) * MIB
    assert sum(rows(explanation).values()) == pytest.approx(explanation.pss_bytes, rel=0.01)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("drone", marks=pytest.mark.slow),
        "numpy_half_filled",
        pytest.param("sb3_replay", marks=pytest.mark.slow),
        "torch_model",
    ],
)
def test_private_memory_has_holders(name: str) -> None:
    explanation = inside_of(name)
    assert explanation.inside is not None
    assert explanation.inside.held_share >= 0.9


def test_what_c_code_of_threads_holds_is_named_by_their_pool() -> None:
    explanation = inside_of("thread_arena")
    assert explanation.inside is not None
    found = {h.path: h.bytes for h in explanation.inside.holders}["threads.Python"]
    # The thread that answers has an arena too.
    assert 4000 * 1024 <= found <= 5 * MIB
    assert sum(rows(explanation).values()) == pytest.approx(explanation.pss_bytes, rel=0.01)


def test_what_libraries_hold_in_the_heap_is_named_from_outside() -> None:
    with running("torch_model") as process:
        plain = memfit.explain(process.pid, inside=False)
        followed = memfit.explain(process.pid, inside=False, native=True)
        native = rows(followed)["native.libtorch_cpu"]
        heap = rows(plain)["malloc.heap"]
        assert 20 * MIB <= native <= heap
        assert sum(rows(followed).values()) == pytest.approx(followed.pss_bytes, rel=0.01)


def test_activations_that_only_autograd_holds_are_named() -> None:
    explanation = inside_of("held_graph")
    assert explanation.inside is not None
    held = {h.path: h.bytes for h in explanation.inside.holders}
    # Each tanh keeps its output; the first layer also its input, which is gone from Python. Those
    # which Python once had still have an object that only C++ holds, and so are told.
    kept = 7 * 32768 * 64 * 4
    found = held["torch.activations"] + held["held by C code alone (torch)"]
    assert held["torch.activations"] and found == pytest.approx(kept, rel=0.001)
    assert explanation.inside.held_share >= 0.9


def test_arrays_are_found_from_outside() -> None:
    with running("numpy_half_filled") as process:
        followed = memfit.explain(process.pid, inside=False, native=True)
        # The arrays of 4 KiB are not told apart from the heap; the last huge page may be more.
        assert 80 * MIB <= rows(followed)["numpy.arrays"] <= 83 * MIB
        assert sum(rows(followed).values()) == pytest.approx(followed.pss_bytes, rel=0.01)


@pytest.mark.parametrize("malloc", ["pymalloc", "malloc"])
def test_arrays_that_moved_while_the_process_told_are_found(
    malloc: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONMALLOC", malloc)
    run = (sys.executable, "-m", "memfit", "run", "-q", "--no-file", "--")
    with running("moving_arrays", *run) as process:
        assert process.stdin is not None and process.stdout is not None
        child = kernel.recorded(process.pid)
        told = look_inside(read_process(child, numbers=None), duplicates=False, timeout=60)
        assert told is not None
        assert {"held[2]", "small"} <= {arrays.path for arrays in told.arrays}
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"moved\n"
        dealt = deal(read_process(child, numbers=[]), told)
    held = {h.path: h.bytes for h in dealt.holders}
    assert held["numpy.arrays"] == pytest.approx(48.1 * MIB, rel=0.001)
    assert held["held[2]"] == 0
    assert dealt.unnamed <= 0.1 * dealt.private


def explain_json(*words: str) -> tuple[int, dict[str, Any], str]:
    done = subprocess.run(
        [sys.executable, "-m", "memfit", "explain", *words, "--format", "json"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr


def test_the_command_prints_json_and_has_exit_codes() -> None:
    with running("numpy_half_filled") as process:
        code, answer, error = explain_json(str(process.pid))
        assert (code, error) == (0, "")
        assert answer["schema"] == 1 and answer["kind"] == "explain"
        assert sum(c["bytes"] for c in answer["components"]) == pytest.approx(
            answer["pss_bytes"], rel=0.01
        )
        code, answer, _ = explain_json(str(process.pid), "--limit", "10MiB")
        assert code == 3 and answer["fits"] is False


def refused(*words: str) -> str:
    code, answer, error = explain_json(*words)
    assert code == 2 and not answer
    assert "Traceback" not in error
    return error


def test_what_cannot_be_explained_is_refused_with_a_reason() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert "no process" in refused(str(ended.pid))
    zombie = subprocess.Popen([sys.executable, "-c", ""])
    time.sleep(1)
    try:
        assert "zombie" in refused(str(zombie.pid))
    finally:
        zombie.wait()
    assert "PID" in refused("train.py")
    assert "no process" in refused("4194304000")
    assert "time" in refused(str(os.getpid()), "--for", "soon")


def test_a_thread_of_the_kernel_has_no_memory() -> None:
    name = Path("/proc/2/comm")
    if not name.exists() or name.read_text().strip() != "kthreadd":
        pytest.skip("kernel threads are not visible here")
    assert "kernel" in refused("2")


def test_a_process_of_another_user_is_refused() -> None:
    if os.getuid() != 0:
        assert "another user" in refused("1")
        return
    with running("python_objects") as process:
        command = [sys.executable, "-m", "memfit", "explain", str(process.pid)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        if not os.access(sys.executable, os.X_OK) or not _others_may_run():
            pytest.skip("no other user may run this Python")
        done = subprocess.run(
            command, capture_output=True, text=True, user=65534, env=environment, check=False
        )
        assert done.returncode == 2
        assert "another user" in done.stderr


def _others_may_run() -> bool:
    try:
        done = subprocess.run(
            [sys.executable, "-c", "import memfit.cli"],
            capture_output=True,
            user=65534,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=False,
            timeout=60,
        )
    except OSError:
        return False
    return done.returncode == 0


def test_a_target_that_ends_half_way_is_said_to_have_ended() -> None:
    with running("python_objects") as process:
        reader = subprocess.Popen(
            [sys.executable, "-m", "memfit", "explain", str(process.pid), "--for", "3s", "-q"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        time.sleep(1.5)
        process.send_signal(signal.SIGKILL)
        process.wait()
        _, error = reader.communicate(timeout=60)
        assert reader.returncode == 2
        assert str(process.pid) in error and "Traceback" not in error
