"""What follows learn() is watched while it runs, bounded, and cut off from the outside."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memfit.measure.children import sandbox
from memfit.model import AfterEnd
from memfit.model.job import Job, Look, Status, TargetKind

MIB = 2**20
# Plays a script's part, with no library: what would learn is any object.
PROGRAM = """
import sys, os, json, time
import numpy as np
from memfit.child.after_learn import AfterLearn
from memfit.child.no_outside import close_off
from memfit.model.json_loader import to_json

class Model: pass
class Training:
    def __init__(self, model): self.model = model
    def identity(self): return self.model

def tell(found):
    os.write(1, json.dumps(to_json(found)).encode())
    os._exit(0)

after = AfterLearn(os.path.abspath(__file__), {seconds}, tell)
def learn(model): after.learned(Training(model))

class Limited:  # as gymnasium's TimeLimit
    _max_episode_steps = 0
    def __init__(self): self._max_episode_steps = 1000
class Recorder:
    def __init__(self, env):
        self.env, self.recorded_frames = env, []
    def step(self):
        self.recorded_frames.append(np.full((256, 256, 3), 7, np.uint8))
model = Model()
{script}
tell(after.ended())
"""
FRAME = 256 * 256 * 3


def watched(folder: Path, script: str, seconds: float = 20) -> Any:
    file = folder / "train.py"
    file.write_text(PROGRAM.format(script=script, seconds=seconds))
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, timeout=60, check=True
    )
    return json.loads(done.stdout)


def line_of(folder: Path, text: str) -> int:
    lines = (folder / "train.py").read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if text in line)


def test_the_highest_point_is_found_though_it_is_past(tmp_path: Path) -> None:
    script = "learn(model)\nheld = np.ones(80 * 2**20, np.uint8)\ntime.sleep(0.2)\ndel held"
    found = watched(tmp_path, script)
    assert found["grown"] == pytest.approx(80 * MIB, abs=2 * MIB)
    assert found["ended"] == AfterEnd.WHOLE and found["model_alive"] and not found["frames"]


def test_pictures_of_a_recorder_are_found_with_the_length_of_its_episodes(tmp_path: Path) -> None:
    """Time runs out in an episode of 1,000 steps, in the loop or in the step that it calls."""
    script = (
        "learn(model)\nfilm = Recorder(Limited())\nwhile True:\n  film.step()\n  time.sleep(.005)"
    )
    found = watched(tmp_path, script, seconds=1.5)
    frames = found["frames"]
    assert (frames["holder"], frames["episode_steps"]) == ("Recorder.recorded_frames", 1000)
    assert frames["each_bytes"] == FRAME and frames["count"] >= 4
    assert frames["beside"] < 8 * MIB
    assert found["ended"] == AfterEnd.TIME
    lines = {"while True:", "film.step()", "time.sleep(.005)", "self.recorded_frames.append"}
    assert found["ended_line"] in {line_of(tmp_path, text) for text in lines}


def test_pictures_in_a_plain_list_of_a_function_are_found(tmp_path: Path) -> None:
    script = (
        "def film():\n  frames = []\n  for _ in range(300):\n"
        "    frames.append(np.full((256, 256, 3), 7, np.uint8)); time.sleep(.002)\n"
        "learn(model)\nfilm()"
    )
    found = watched(tmp_path, script)
    assert found["frames"]["holder"] == "frames"
    assert found["frames"]["episode_steps"] == 0
    assert found["grown"] == pytest.approx(300 * FRAME, rel=0.05)


def test_a_model_that_is_gone_is_told_and_only_the_last_learning_counts(tmp_path: Path) -> None:
    """Between two trainings 60 MiB were held, after the last 90."""
    script = (
        "learn(model)\nheld = np.ones(60 * 2**20, np.uint8)\ntime.sleep(.2)\ndel held\n"
        "learn(model)\ndel model\nheld = np.ones(90 * 2**20, np.uint8)\ntime.sleep(.2)"
    )
    found = watched(tmp_path, script)
    assert found["grown"] == pytest.approx(90 * MIB, abs=2 * MIB)
    assert not found["model_alive"]


def test_nobody_outside_is_told_started_or_signalled(tmp_path: Path) -> None:
    script = f"""
import socket, subprocess, signal
listening = socket.socket(); listening.bind(("127.0.0.1", 0)); listening.listen()
close_off({str(tmp_path)!r})
refused = []
def attempt(name, work):
    try: work()
    except PermissionError: refused.append(name)
    except OSError as error: refused.append(f"{{name}} {{error}}")
attempt("connect", lambda: socket.create_connection(listening.getsockname(), 5))
attempt("start", lambda: subprocess.run(["true"]))
attempt("system", lambda: os.system("true"))
attempt("signal", lambda: os.kill(os.getppid(), 0))
attempt("signal own", lambda: os.kill(os.getpid(), 0))
os.write(1, json.dumps(refused).encode()); os._exit(0)
"""
    assert watched(tmp_path, script) == ["connect", "start", "system", "signal"]


def test_the_line_is_the_scripts_own_and_not_its_envs(tmp_path: Path) -> None:
    """`called` is a library's: the env that it steps stands in the script, but is not the place."""
    (tmp_path / "library.py").write_text("def called(step):\n    step()")
    script = (
        "from library import called\ndef step():\n  global held\n"
        "  held = np.ones(50 * 2**20, np.uint8); time.sleep(.2)\n"
        "def main():\n  called(step)\nlearn(model)\nmain()"
    )
    found = watched(tmp_path, script)
    assert (found["line"], found["calling"]) == (line_of(tmp_path, "  called(step)"), "called")


PPO = """
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
model = PPO("MlpPolicy", "CartPole-v1", n_steps=32, batch_size=32, n_epochs=1, device="cpu")
model.learn(10**9)
evaluate_policy(model, model.get_env(), 10_000)
PPO.load("best_model")
"""


@pytest.mark.torch
def test_a_script_is_followed_after_its_untrained_model(tmp_path: Path) -> None:
    """Evaluating takes next to nothing, as all is warm; what fails does so at its line."""
    script = tmp_path / "train.py"
    script.write_text(PPO)
    job = Job(kind=TargetKind.SCRIPT, target=str(script), look=Look.AFTER, seconds=10)
    answer = sandbox.run(job, timeout=90, memory=2**31).answer
    assert answer.status is Status.RAN_ON
    found = answer.after
    assert found is not None and found.ended is AfterEnd.FAILED
    assert found.ended_line == 7 and found.reason.startswith("FileNotFoundError")
    assert found.grown < 8 * MIB and found.frames is None
    assert found.model_alive
