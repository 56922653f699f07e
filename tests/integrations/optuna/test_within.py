"""Studies within a limit: memory never ends them, Ctrl-C ends all, and bad input is refused."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, IntDistribution

from memfit.errors import UsageError
from memfit.integrations.optuna import ObjectiveFailed, constraints_func, within
from memfit.measure.kernel import proc
from memfit.units import GIB, MIB

OBJECTIVES = '''
    import os, time

    def by_number(trial):
        """What no plan knows, and a different end for each trial."""
        trial.suggest_float("x", 0, 1)
        time.sleep(0.6)
        if trial.number == 1:
            raise MemoryError("Unable to allocate 3 TiB")
        held = []
        while trial.number == 2:
            held.append(bytearray(os.urandom(1 << 20)))
            time.sleep(0.005)
        if trial.number == 3:
            os.kill(os.getpid(), 9)
        if trial.number == 4:
            raise KeyError("lr")
        return trial.number

    def waits(trial):
        if trial.user_attrs:  # no plan has any
            time.sleep(100)
        return 1.0

    def ppo(trial):
        from stable_baselines3 import PPO
        n_steps = trial.suggest_int("n_steps", 64, 2**27, log=True)
        rate = trial.suggest_float("learning_rate", 1e-5, 1e-3, log=True)
        model = PPO("MlpPolicy", "CartPole-v1", n_steps=n_steps, learning_rate=rate, n_epochs=1)
        model.learn(64)
        return rate
'''


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "its_trials.py").write_text(textwrap.dedent(OBJECTIVES))
    monkeypatch.chdir(tmp_path)
    return tmp_path


SPACE = {"n": IntDistribution(1, 9)}


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: within("no_such_module:objective"), "there is no module no_such_module"),
        (lambda: within("its_trials:missing"), "its_trials.py has no missing: name the function"),
        (lambda: within("its_trials"), "write module:function"),
        (lambda: within("missing.py:f"), "there is no file missing.py"),
        (lambda: within(lambda trial: 1.0), "cannot be loaded by a process of its own"),
        (lambda: within("its_trials:waits", limit="much"), "is not an amount of memory"),
        (lambda: within("its_trials:waits", limit=0), "give an amount of memory such as 16GiB"),
        (lambda: within("its_trials:waits", jobs=0), 'give a whole number above 0, or "fit"'),
        (lambda: within("its_trials:waits", value="x"), "an objective returns its value"),
        (lambda: within("its_trials:waits", plan="a.toml"), "needs the space of the study"),
        (lambda: within(["train.py"], space=SPACE), "how its value is found"),
        (lambda: within(["a"], space=SPACE, value="v"), "does not use {n}: write it where"),
        (lambda: within(["a", "{n}"], space=SPACE, value="("), "is no pattern"),
        (lambda: within(["a", "{n}"], space={"n": 3}, value="v"), "give an IntDistribution"),  # type: ignore[dict-item]
    ],
)
def test_bad_input_is_refused(make: Callable[[], Any], told: str) -> None:
    with pytest.raises(UsageError) as refused:
        make()
    assert told in str(refused.value) and refused.value.exit_code == 2


def test_a_study_does_not_begin_in_one_of_its_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMFIT_TRIAL", "1")
    with pytest.raises(UsageError, match='put it below if __name__ == "__main__"'):
        within("its_trials:waits")


def test_a_spec_without_a_parameter_of_the_space_is_refused() -> None:
    space = {"widht": CategoricalDistribution([8, 16])}
    bounded = within("its_trials:waits", "8GiB", plan="trader-fit.toml", space=space)
    with pytest.raises(UsageError, match="widht"):
        bounded.optimize(optuna.create_study(), 3)


def test_memory_never_ends_a_study(folder: Path) -> None:
    """Of what no plan knows, each runs alone: refused, grown, killed and failed as it may be."""
    said: list[str] = []
    before = set(proc.descendants(os.getpid()))
    own = proc.tree_memory(os.getpid()).pss
    bounded = within("its_trials:by_number", own + 150 * MIB, say=said.append)
    study = optuna.create_study(storage=f"sqlite:///{folder}/study.db")
    bounded.optimize(study, 6, catch=(ObjectiveFailed,))
    states = [trial.state.name for trial in study.trials]
    assert states == ["COMPLETE", "PRUNED", "PRUNED", "PRUNED", "FAIL", "COMPLETE"]
    assert any("no trial can be planned, and each runs alone" in text for text in said)
    facts = [trial.user_attrs for trial in study.trials]
    assert facts[1]["reason"] == "MemoryError: Unable to allocate 3 TiB"
    # By the guard, or by the kernel's own net where that was quicker on a busy machine.
    assert re.search("more than its share of|by the kernel for want of memory", facts[2]["reason"])
    assert "SIGKILL" in facts[3]["reason"]
    assert "KeyError: 'lr'" in facts[4]["reason"]
    verdicts = [each["verdict"] for each in facts[:4]]
    assert verdicts[:2] == ["not planned: ran alone", "out of memory"]
    assert verdicts[2] in ("over its share", "out of memory") and verdicts[3] == "out of memory"
    assert constraints_func(study.trials[0])[0] < 0
    assert study.trials[0].user_attrs["peak_bytes"] < 150 * MIB
    for each in facts:
        assert Path(each["recording"]).exists() and Path(each["output"]).exists()
    assert set(proc.descendants(os.getpid())) <= before
    # Optuna's own loop does the same with it, in threads.
    study.optimize(bounded, n_trials=2, n_jobs=2)
    assert [trial.state.name for trial in study.trials[6:]] == ["COMPLETE"] * 2


def test_an_objective_that_fails_ends_the_study_as_in_optuna() -> None:
    study = optuna.create_study()
    for _ in range(4):
        study.tell(study.ask(), 0.0)
    with pytest.raises(ObjectiveFailed, match="KeyError: 'lr'") as failed:
        within("its_trials:by_number", "4GiB").optimize(study, 3)
    assert "Traceback" in failed.value.output and failed.value.exit_code == 1
    assert study.trials[4].state.name == "FAIL"
    assert not [trial for trial in study.trials if trial.state.name == "RUNNING"]


@pytest.mark.parametrize("how", ["bounded.optimize(study)", "study.optimize(bounded, n_jobs=2)"])
def test_ctrl_c_ends_all_trials(how: str, folder: Path) -> None:
    (folder / "study.py").write_text(
        "import optuna\n"
        "from memfit.integrations.optuna import within\n"
        "from its_trials import waits\n"
        "if __name__ == '__main__':\n"
        "    bounded = within(waits, '2GiB', say=lambda text: print(text, flush=True))\n"
        "    study = optuna.create_study(storage='sqlite:///study.db', study_name='ended')\n"
        f"    {how}\n"
    )
    child = subprocess.Popen(
        [sys.executable, "study.py"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        assert child.stdout is not None
        assert any(" begins with " in line for line in child.stdout)  # whichever is first
        until = time.monotonic() + 30
        while not (below := proc.descendants(child.pid)) and time.monotonic() < until:
            time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        child.wait(30)
    finally:
        child.kill()
        child.communicate()
    assert below and child.returncode == -signal.SIGINT
    until = time.monotonic() + 10
    while any(map(proc.resident, below)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(map(proc.resident, below))
    trials = optuna.load_study(study_name="ended", storage="sqlite:///study.db").trials
    assert {trial.state.name for trial in trials} == {"FAIL"}


@pytest.mark.slow
@pytest.mark.truth
@pytest.mark.timeout(400)
def test_a_study_of_a_library_is_planned_by_one_survey() -> None:
    """What does not fit is pruned before it starts; the others run at once, as large as planned."""
    said: list[str] = []
    bounded = within("its_trials:ppo", "2GiB", say=said.append)
    study = optuna.create_study()
    for steps in (64, 2**27, 80, 2**26):
        study.enqueue_trial({"n_steps": steps, "learning_rate": 1e-4})
    bounded.optimize(study, 4)
    assert said.count("planning the space of the study") == 1
    assert [len(bounded.planned.surveys), bounded.room.most_at_once] == [1, 2]
    states = [trial.state.name for trial in study.trials]
    assert states == ["COMPLETE", "PRUNED", "COMPLETE", "PRUNED"]
    for trial in study.trials:
        facts = trial.user_attrs
        if trial.state.name == "PRUNED":
            assert facts["verdict"] == "too large" and facts["over_limit"] > 0
            assert facts["row"].startswith("rollout_buffer.") and facts["row_bytes"] >= GIB
            assert "its largest row is rollout_buffer." in facts["reason"]
        else:
            assert facts["verdict"] == "fits" and facts["over_limit"] < 0
            assert facts["peak_bytes"] <= facts["share_bytes"] == facts["plan"]["upper_bytes"]
            assert facts["peak_bytes"] > 0.85 * facts["plan"]["peak_bytes"]
