"""Every way in which a child's look at a target can end has a status of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from memfit.measure.children import sandbox
from memfit.model.job import Answer, Job, Look, Status, TargetKind
from memfit.sources.target import job_of

PPO = """
from stable_baselines3 import PPO
model = PPO("MlpPolicy", "CartPole-v1", n_steps=32, batch_size=32, n_epochs=1, device="cpu")
{before}
model.learn({steps})
"""
SPEC = """
schema = 1
name = "wrong"
library = "torch"
[knobs]
batch_size = 32
[[network]]
name = "net"
input = [64]
layers = [{ type = "Linear", args = [63, 1] }]
[update]
batch = "batch_size"
"""
WRONG_ENV = """
def step(action):
    raise ValueError("this env is wrong")
model.env.envs[0].step = step
"""


def script(folder: Path, text: str) -> Job:
    file = folder / "train.py"
    file.write_text(text)
    return Job(kind=TargetKind.SCRIPT, target=str(file))


def ppo(folder: Path, before: str = "", steps: int = 64) -> Job:
    return script(folder, PPO.format(before=before, steps=steps))


def ended(job: Job, *, timeout: float = 90, memory: int = 2**31) -> Answer:
    return sandbox.run(job, timeout=timeout, memory=memory).answer


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("print('nothing to learn')", Status.NEVER_LEARNED),
        ("raise SystemExit", Status.NEVER_LEARNED),
        ("raise SystemExit(0)", Status.NEVER_LEARNED),
        ("raise SystemExit(3)", Status.TARGET_FAILED),
        ("raise SystemExit('no data')", Status.TARGET_FAILED),
        ("1 // 0", Status.TARGET_FAILED),
        ("import no_such_module", Status.TARGET_FAILED),
        ("raise KeyboardInterrupt", Status.TARGET_FAILED),
        ("import os; os._exit(0)", Status.DIED),
        ("import os; os.kill(os.getpid(), 9)", Status.DIED),
        ("import os; os.fork() or exit(0); os.wait()", Status.NEVER_LEARNED),
    ],
)
def test_a_script_that_does_not_learn(text: str, status: Status, tmp_path: Path) -> None:
    assert ended(script(tmp_path, text)).status is status


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("raise SystemExit(3)", "it ended with exit code 3"),
        ("raise SystemExit('no data')", "no data"),
    ],
)
def test_what_a_failed_script_said_of_itself(text: str, output: str, tmp_path: Path) -> None:
    assert ended(script(tmp_path, text)).output == output


def test_a_failed_scripts_traceback_is_its_own(tmp_path: Path) -> None:
    output = ended(script(tmp_path, "def divide():\n    return 1 // 0\ndivide()")).output
    assert output.endswith("ZeroDivisionError: integer division or modulo by zero\n")
    assert "in divide" in output
    assert "memfit" not in output and "runpy" not in output


@pytest.mark.parametrize(("how", "code"), [("_exit(7)", 7), ("kill(os.getpid(), 9)", -9)])
def test_how_a_process_died(how: str, code: int, tmp_path: Path) -> None:
    assert ended(script(tmp_path, f"import os; os.{how}")).exit_code == code


def test_a_library_that_is_not_there_is_named_with_its_extra(tmp_path: Path) -> None:
    hidden = "import sys\nsys.path = [p for p in sys.path if 'site-packages' not in p]\n"
    answer = ended(script(tmp_path, f"{hidden}import stable_baselines3"))
    assert answer.status is Status.MISSING_EXTRA
    assert (answer.library, answer.extra) == ("stable_baselines3", "sb3")


@pytest.mark.torch
def test_a_spec_whose_networks_do_not_run(tmp_path: Path) -> None:
    spec = tmp_path / "run.toml"
    spec.write_text(SPEC)
    answer = ended(job_of(spec, ()))
    assert answer.status is Status.BAD_SPEC
    assert "its networks do not run" in answer.reason


@pytest.mark.torch
def test_a_spec_may_import_modules_of_packages(tmp_path: Path) -> None:
    """One that is there is imported, and one that is not is told by its name."""
    spec = tmp_path / "run.toml"
    spec.write_text(SPEC.replace("schema = 1", 'schema = 1\nimports = ["xml.dom", "xml.nowhere"]'))
    answer = ended(job_of(spec, ()))
    assert answer.status is Status.BAD_SPEC
    assert answer.reason == "imports: there is no module xml.nowhere"


@pytest.mark.torch
def test_a_training_is_surveyed_where_it_would_begin(tmp_path: Path) -> None:
    answer = ended(ppo(tmp_path))
    assert answer.status is Status.SURVEYED
    assert answer.spec is not None and answer.readings is not None
    assert answer.spec.knobs["n_steps"] == 32
    assert 0 < answer.readings.stopped < answer.readings.warm
    assert not answer.readings.assumed
    assert not answer.again and not answer.earlier_alive


@pytest.mark.torch
def test_a_training_is_rehearsed_at_the_scales_asked_for(tmp_path: Path) -> None:
    scales = ({"n_steps": 32}, {"n_steps": 64})
    job = replace(ppo(tmp_path), look=Look.REHEARSE, scales=scales, seconds=3.0)
    answer = ended(job)
    assert answer.status is Status.REHEARSED
    assert [one.knobs for one in answer.rehearsed] == list(scales)
    assert all({"rollout", "update"} <= set(one.moments) for one in answer.rehearsed)


@pytest.mark.torch
def test_a_training_is_observed_for_some_updates(tmp_path: Path) -> None:
    job = replace(ppo(tmp_path, steps=10**9), look=Look.OBSERVE, updates=2)
    answer = ended(job)
    assert answer.status is Status.OBSERVED
    assert {"build", "rollout", "update"} <= set(answer.peaks)


@pytest.mark.torch
def test_a_setting_that_the_run_does_not_have(tmp_path: Path) -> None:
    answer = ended(replace(ppo(tmp_path), knobs={"buffer_size": 100}))
    assert answer.status is Status.NO_SETTING
    assert "n_steps" in answer.settings and "buffer_size" not in answer.settings


@pytest.mark.torch
def test_an_env_that_fails_while_it_is_surveyed_is_the_targets_failure(tmp_path: Path) -> None:
    answer = ended(ppo(tmp_path, before=WRONG_ENV))
    assert answer.status is Status.TARGET_FAILED
    assert answer.output.endswith("ValueError: this env is wrong\n")


@pytest.mark.torch
def test_a_small_update_that_cannot_be_run_is_assumed_and_said(tmp_path: Path) -> None:
    """What a survey asks of a run may be more than the run would do: it is planned all the same."""
    answer = ended(ppo(tmp_path, before="model.rollout_buffer.get = lambda batch_size: 1 // 0"))
    assert answer.status is Status.SURVEYED
    assert answer.readings is not None and answer.readings.assumed
    assert "could not be run" in answer.readings.notes[-1]


@pytest.mark.torch
def test_a_run_that_memfit_itself_cannot_read_is_not_the_targets_failure(tmp_path: Path) -> None:
    answer = ended(ppo(tmp_path, before="model.n_steps = 'many'"))
    assert answer.status is Status.SURVEY_FAILED
    assert "memfit" in answer.output


@pytest.mark.torch
def test_a_second_training_of_the_same_model_is_told(tmp_path: Path) -> None:
    answer = ended(replace(ppo(tmp_path, before="model.learn(64)"), skip=1))
    assert answer.status is Status.SURVEYED
    assert answer.again and answer.earlier_alive


def test_a_script_in_no_hurry_is_ended_at_its_time(tmp_path: Path) -> None:
    answer = ended(script(tmp_path, "import time; time.sleep(60)"), timeout=2)
    assert answer == Answer(status=Status.TIMED_OUT, reason="2 s")


def test_a_script_that_takes_too_much_is_ended_at_its_limit(tmp_path: Path) -> None:
    text = "held = bytearray(b'x') * 2**28\nimport time; time.sleep(60)"
    answer = ended(script(tmp_path, text), memory=200 * 2**20)
    assert answer == Answer(status=Status.OVER_LIMIT, reason="200 MiB")
