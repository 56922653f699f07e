"""A trial's process: it is asked and answered, held to its share, and whatever it does is told."""

from __future__ import annotations

import os
import re
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import optuna
import pytest

from memfit.integrations.optuna.trial_process import TrialEnd, TrialProcess
from memfit.measure.kernel import proc
from memfit.units import MIB

OBJECTIVES = """
    import os, sys, time

    class TrialPruned(Exception):
        pass

    def asks(trial):
        x = trial.suggest_float("x", 0.5, 2.0, log=True)
        n = trial.suggest_int("n", 2, 8, step=2)
        kind = trial.suggest_categorical("kind", ["a", None, 3, (1, 2)])
        assert 0.5 <= x <= 2 and n in (2, 4, 6, 8) and kind in ("a", None, 3, (1, 2))
        assert trial.params == {"x": x, "n": n, "kind": kind} and trial.number == 0
        trial.report(n, 1)
        assert trial.should_prune() is False
        trial.set_user_attr("seen", [n, x])
        assert trial.user_attrs["seen"] == [n, x]
        print("said by the objective")
        time.sleep(0.7)  # so that it is looked at
        return x

    def again(trial):
        assert trial.suggest_int("n", 1, 9) == trial.suggest_int("n", 1, 9)
        try:
            trial.suggest_int("m", 9, 1)
        except ValueError as error:
            return 1.0

    def several(trial):
        return [1, 2.5]

    def no_number(trial):
        return "much"

    def pruned(trial):
        raise TrialPruned("not worth it")

    def fails(trial):
        raise KeyError("lr")

    def refused(trial):
        raise MemoryError("Unable to allocate 3 TiB")

    def exits(trial):
        sys.exit("that was all")

    def quiet(trial):
        os._exit(0)

    def killed(trial):
        os.kill(os.getpid(), 9)

    def grows(trial):
        held = []
        while True:
            held.append(bytearray(os.urandom(1 << 20)) * 4)
            time.sleep(0.01)

    def waits(trial):
        if os.fork() == 0:
            time.sleep(100)
        trial.set_user_attr("waits", True)
        time.sleep(100)

    def study_in_study(trial):
        from memfit.integrations.optuna import within
        within(asks, limit="1GiB")
"""
Make = Callable[..., TrialProcess]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    (tmp_path / "its_objectives.py").write_text(textwrap.dedent(OBJECTIVES))
    monkeypatch.chdir(tmp_path)
    study = optuna.create_study()

    def made(share: int = 300 * MIB, stopped: Callable[[], bool] = lambda: False) -> TrialProcess:
        return TrialProcess(
            study.ask(),
            share=share,
            recording=tmp_path / "trial.db",
            printed=tmp_path / "trial.txt",
            noted=lambda name, kind: None,
            stopped=stopped,
        )

    return made


def called(make: Make, name: str) -> tuple[TrialProcess, TrialEnd]:
    process = make()
    return process, process.objective(f"its_objectives:{name}")


def test_an_objective_is_answered_by_the_study_s_trial(make: Make) -> None:
    process, end = called(make, "asks")
    assert end.value == process.trial.params["x"] and not end.failed
    assert process.trial.params.keys() == {"x", "n", "kind"}
    assert process.trial.user_attrs["seen"] == [process.trial.params["n"], end.value]
    assert process.trial.storage.get_trial(process.trial._trial_id).intermediate_values
    assert 5 * MIB < end.peak_bytes < 200 * MIB
    assert process.printed.read_text() == "said by the objective\n"


def test_what_the_study_s_trial_refuses_the_objective_sees(make: Make) -> None:
    assert called(make, "again")[1].value == 1.0


def test_an_objective_of_a_program_s_file_runs_without_its_main_part(
    make: Make, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text("def f(trial): return 2\nassert __name__ != '__main__'\n")
    assert make().objective(f"{tmp_path}/program.py:f").value == 2


@pytest.mark.parametrize(
    ("name", "field", "text"),
    [
        ("several", "value", "[1.0, 2.5]"),
        ("no_number", "value", "much"),
        ("pruned", "pruned", "not worth it"),
        ("fails", "failed", "KeyError: 'lr'"),
        ("refused", "memory", "MemoryError: Unable to allocate 3 TiB"),
        ("exits", "failed", "it ended with exit code 1: that was all"),
        ("killed", "memory", "it was killed (SIGKILL)"),
        ("study_in_study", "failed", "a study was begun in the process of one of its trials"),
    ],
)
def test_however_it_ends_is_told(make: Make, name: str, field: str, text: str) -> None:
    _, end = called(make, name)
    assert text in str(getattr(end, field))


def test_one_that_ends_without_a_word_has_no_value(make: Make) -> None:
    _, end = called(make, "quiet")
    assert end.value is None and not end.failed and not end.memory


def test_one_that_grows_beyond_its_share_is_stopped(make: Make) -> None:
    process = make(100 * MIB)
    end = process.objective("its_objectives:grows")
    assert re.search(r"it held 1\d\d MiB, more than its share of 100 MiB", end.over_share)
    assert 90 * MIB < end.peak_bytes < 200 * MIB


def test_a_study_that_ends_takes_all_processes_with_it(make: Make) -> None:
    over = threading.Event()
    process = make(stopped=over.is_set)
    ends: list[TrialEnd] = []
    thread = threading.Thread(target=lambda: ends.append(process.objective("its_objectives:waits")))
    thread.start()
    until = time.monotonic() + 20
    while "waits" not in process.trial.user_attrs and time.monotonic() < until:
        time.sleep(0.02)
    pids = [process.control.pid, *proc.descendants(process.control.pid)]
    assert len(pids) == 2
    over.set()
    thread.join(20)
    assert ends and ends[0].failed == "the study was stopped"
    while any(map(proc.resident, pids)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(map(proc.resident, pids))


def command(make: Make, program: str) -> TrialEnd:
    return make().command([sys.executable, "-c", program], re.compile(r"reward=(\S+)"))


def test_a_command_s_value_is_the_last_that_it_printed(make: Make) -> None:
    end = command(make, "print('reward=1'); print('reward=-2.5 now')")
    assert end.value == -2.5


@pytest.mark.parametrize(
    ("program", "field", "text"),
    [
        ("print('reward=high')", "failed", "finds a number in"),
        ("print('nothing')", "failed", "finds a number in"),
        ("print('reward=1'); raise SystemExit(3)", "failed", "it ended with exit code 3"),
        ("raise MemoryError", "memory", "MemoryError"),
    ],
)
def test_a_command_without_a_value_is_told(make: Make, program: str, field: str, text: str) -> None:
    end = command(make, program)
    assert end.value is None and text in getattr(end, field)


def test_the_kernel_would_end_a_trial_first(make: Make) -> None:
    end = command(make, "print('reward=' + open('/proc/self/oom_score_adj').read())")
    assert end.value is not None and end.value >= 500
    own = int(Path(f"/proc/{os.getpid()}/oom_score_adj").read_text())
    assert own < end.value
