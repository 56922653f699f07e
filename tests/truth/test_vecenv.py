"""Light vector envs in real programs: their bytes, and what is left when a program ends badly."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from memfit.dropins import LightVecEnv, LightVectorEnv
from tests.dropins import vecenv_envs
from tests.dropins.vecenv_envs import SPACES, walks
from tests.truth import kernel
from tests.truth.dropin_bytes import light_vec_env

ROOT = str(Path(__file__).parents[2])
pytestmark = [pytest.mark.truth, pytest.mark.timeout(180)]


def arrays(space: spaces.Space[Any]) -> list[int]:
    """Bytes of each array of one observation, as numpy has them."""
    if isinstance(space, spaces.Dict):
        return [n for part in space.spaces.values() for n in arrays(part)]
    if isinstance(space, spaces.Tuple):
        return [n for part in space.spaces for n in arrays(part)]
    return [np.asarray(space.sample(), space.dtype).nbytes]


@pytest.mark.parametrize("kind", SPACES)
@pytest.mark.parametrize("count", [1, 5])
def test_shared_memory_is_as_large_as_its_formula(kind: str, count: int) -> None:
    size = light_vec_env(*arrays(SPACES[kind])).evaluate({"n_envs": count})
    for cls in (LightVecEnv, LightVectorEnv):
        env = cls(walks(count, kind), workers=1)
        assert env.shared_nbytes == size
        assert [found for _, found in mapped("memfit-observations", env.pids[0])] == [size]
        gc.collect()  # what other tests held goes now, not below
        before = len(mapped("memfit-observations"))
        env.close()
        assert len(mapped("memfit-observations")) == before - 1


def mapped(name: str, pid: int | str = "self") -> list[tuple[int, int]]:
    """Resident and reserved bytes of each mapping of this name."""
    found = []
    lines = Path(f"/proc/{pid}/smaps").read_text().splitlines()
    for i, line in enumerate(lines):
        if name in line:
            facts = dict(pair.split()[:2] for pair in lines[i + 1 : i + 20] if ":" in pair)
            found.append((int(facts["Rss:"]) * 1024, int(facts["Size:"]) * 1024))
    return found


def test_only_slots_that_are_used_are_resident(monkeypatch: pytest.MonkeyPatch) -> None:
    space = spaces.Box(0, 255, (256, 1024), np.uint8)
    monkeypatch.setitem(vecenv_envs.SPACES, "large", space)

    def build() -> Any:
        from tests.dropins import vecenv_envs as there

        there.SPACES["large"] = space
        return there.Walk("large")

    env = LightVecEnv([build] * 4, workers=2)
    slot = 4 * 256 * 1024
    obs = env.reset()
    assert slot <= mapped("memfit-observations", env.pids[0])[0][0] * 2 <= slot + 4 * 4096
    for _ in range(10):
        obs = env.step(np.zeros(4, np.int64))[0]
        assert int(obs.sum()) >= 0
    size = light_vec_env(256 * 1024).evaluate({"n_envs": 4})
    (resident,) = [found for found, reserved in mapped("memfit-observations") if reserved == size]
    # One is held while another is written: never the third.
    assert 2 * slot <= resident <= 2 * slot + 4096
    env.close()


def private(pid: int) -> int:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(line.split()[1]) * 1024 for line in text.splitlines() if "Private_" in line)


CARTPOLE = """
import sys
import numpy as np
from stable_baselines3.common.env_util import make_vec_env
from memfit.dropins import LightVecEnv

env = make_vec_env("CartPole-v1", n_envs=8, seed=0, vec_env_cls=LightVecEnv,
                   vec_env_kwargs={"workers": 4})
env.reset()
for _ in range(500):
    env.step(np.random.default_rng(0).integers(0, 2, 8))
print(*env.pids, len(env.late_imports), flush=True)
sys.stdin.read()
"""


def start(code: str, *words: str, **options: Any) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", code, *words]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, **options)


def said(process: subprocess.Popen[str]) -> list[int]:
    assert process.stdout is not None
    return [int(word) for word in process.stdout.readline().split()]


def gone(pids: list[int], seconds: float = 20.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if not any(runs(pid) for pid in pids):
            return True
        time.sleep(0.02)
    return False


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_workers_of_cartpole_have_at_most_eight_mebibytes_of_their_own() -> None:
    process = start(CARTPOLE)
    *pids, late = said(process)
    found = [private(pid) for pid in pids]
    assert late == 0  # everything that the envs import is shared
    assert all(nbytes <= 8 << 20 for nbytes in found), found
    process.communicate()
    assert process.returncode == 0 and gone(pids)


@pytest.mark.slow
@pytest.mark.parametrize("who", ["training", "template"])
def test_nothing_is_left_after_a_sigkill(who: str) -> None:
    process = start(CARTPOLE)
    *pids, _ = said(process)
    below = kernel.below(process.pid)
    template = next(pid for pid in below if pid not in pids)
    assert len(below) == 5
    os.kill(process.pid if who == "training" else template, signal.SIGKILL)
    if who == "template":
        assert gone(pids)
        process.kill()
    process.wait()
    assert gone(below)
    assert not [name for name in os.listdir("/dev/shm") if "memfit" in name]
    for stream in (process.stdin, process.stdout):
        assert stream is not None
        stream.close()


HANGS = """
import os, sys, time
import numpy as np
from memfit.dropins import LightVecEnv
from tests.dropins.vecenv_envs import Bad

env = LightVecEnv([lambda: Bad("hang")] * 2, workers=2)
env.reset()
env.step(np.zeros(2, np.int64)); env.step(np.zeros(2, np.int64))
print(*env.pids, flush=True)
try:
    env.step(np.zeros(2, np.int64))
except KeyboardInterrupt:
    print(1, flush=True)
    if sys.argv[1] == "close":
        env.close()
    raise SystemExit(7)
"""


@pytest.mark.parametrize(
    "how", [*(pytest.param(how, marks=pytest.mark.slow) for how in ("close", "forget")), "kill"]
)
def test_workers_that_hang_end_with_the_training(how: str) -> None:
    """Ctrl-C goes to all processes of a terminal, and a step that hangs never returns."""
    process = start(HANGS, how, start_new_session=True, env={**os.environ, "PYTHONPATH": ROOT})
    pids = said(process)
    time.sleep(0.3)
    if how == "kill":
        process.kill()
        process.wait()
    else:
        os.killpg(process.pid, signal.SIGINT)
        assert said(process) == [1]
        assert process.wait(60) == 7
    assert gone(pids)
    for stream in (process.stdin, process.stdout):
        assert stream is not None
        stream.close()


FORGETS = """
import numpy as np
from memfit.dropins import LightVecEnv
from tests.dropins.vecenv_envs import Walk

class Mine(Walk):  # of the script itself: no `if __name__ == "__main__"` is needed
    def say(self):
        return Mine

env = LightVecEnv([Mine] * 3, workers=2)
env.reset()
assert env.env_method("say") == [Mine] * 3
assert env.env_is_wrapped(Mine) == [False] * 3
print(*env.pids, flush=True)
"""


def test_a_script_may_forget_to_close(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(FORGETS)
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": ROOT},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0 and not done.stderr
    assert gone([int(word) for word in done.stdout.split()])
