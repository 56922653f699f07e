"""Bad input, through the real command line: one clear message, and nothing left behind.

Every run here is checked for more than its message: no process survives it, no file of the user's
is changed or added, the folder for temporary files is empty, nothing of memfit's own shows in a
traceback, and nothing goes to standard output.
"""

from __future__ import annotations

import os
import signal
import textwrap
import time
from pathlib import Path

import pytest

from tests.cli.user import User

# -- scripts that fail -----------------------------------------------------------------------------


def test_a_script_that_raises_shows_its_own_traceback(user: User) -> None:
    name = user.script(
        """
        def load():
            raise RuntimeError("the dataset is not there")

        print("loading")
        load()
        """
    )
    outcome = user.fail(name)
    assert outcome.code == 1
    assert "loading" in outcome.err
    shown = outcome.err[outcome.err.index("Traceback (most recent call last):") :]
    assert f'File "{user.folder}/train.py", line 6, in <module>' in shown
    assert "line 3, in load" in shown
    assert "RuntimeError: the dataset is not there" in shown
    assert shown.count("File ") == 2
    assert outcome.message == (
        "memfit: train.py failed before it began to learn or stepped an env: fix the error above, "
        "then plan again"
    )


def test_an_error_in_a_call_that_memfit_stands_before_shows_only_the_script(user: User) -> None:
    outcome = user.fail(user.script("open('data.csv')"))
    assert outcome.code == 1
    assert "FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'" in outcome.err
    assert outcome.err.count("File ") == 1


def test_a_chained_error_shows_only_the_script(user: User) -> None:
    outcome = user.fail(
        user.script(
            """
            try:
                open("missing/data.csv", "w")
            except OSError as error:
                raise ValueError("no data") from error
            """
        )
    )
    assert outcome.code == 1
    assert "direct cause" in outcome.err
    assert outcome.err.count("File ") == 2


def test_a_syntax_error_is_the_scripts_own(user: User) -> None:
    outcome = user.fail(user.script("n_envs = = 3\n"))
    assert outcome.code == 1
    assert "SyntaxError: invalid syntax" in outcome.err
    assert "n_envs = = 3" in outcome.err


@pytest.mark.parametrize("text", ["raise SystemExit(3)", "import os\nos._exit(3)"])
def test_a_script_that_exits_with_a_code_failed(user: User, text: str) -> None:
    outcome = user.fail(user.script(text))
    assert outcome.code == 1
    assert "exit code 3" in outcome.err


def test_a_script_that_exits_with_words_shows_them(user: User) -> None:
    outcome = user.fail(user.script("import sys\nsys.exit('give --env')"))
    assert outcome.code == 1
    assert "give --env" in outcome.err


def test_a_script_that_is_killed_says_so(user: User) -> None:
    outcome = user.fail(user.script("import os\nos.kill(os.getpid(), 11)"))
    assert outcome.code == 1
    assert "SIGSEGV" in outcome.err


def test_arguments_reach_the_script(user: User) -> None:
    name = user.script(
        """
        import argparse
        parser = argparse.ArgumentParser()
        parser.add_argument("--env", choices=["a"])
        print(parser.parse_args().env)
        """
    )
    outcome = user.fail(name, "--", "--env", "b")
    assert outcome.code == 1
    assert "usage: train.py" in outcome.err
    assert "invalid choice: 'b'" in outcome.err
    assert user.fail(name, "--", "--env", "a").code == 2


# -- scripts that never learn ----------------------------------------------------------------------


@pytest.mark.parametrize("text", ["x = 1", "import sys\nsys.exit()", "import sys\nsys.exit(0)"])
def test_a_script_that_never_learns(user: User, text: str) -> None:
    outcome = user.fail(user.script(text))
    assert outcome.code == 2
    assert "without calling learn()" in outcome.message
    assert "spec" in outcome.message


def test_a_script_that_trains_with_something_unknown(user: User) -> None:
    outcome = user.fail(
        user.script(
            """
            class Agent:
                def learn(self, steps):
                    return steps

            Agent().learn(1000)
            """
        )
    )
    assert outcome.code == 2
    assert "stable-baselines3" in outcome.message


def test_a_script_that_hangs_is_ended(user: User) -> None:
    started = time.monotonic()
    name = user.script("import time\nprint('waiting')\ntime.sleep(600)")
    outcome = user.fail(name, "--timeout", "3")
    assert outcome.code == 2
    assert time.monotonic() - started < 30
    assert "within 3 s" in outcome.message
    assert "--timeout" in outcome.message


def test_a_script_that_ignores_signals_is_ended(user: User) -> None:
    text = """
        import signal, time
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        while True:
            try:
                time.sleep(600)
            except BaseException:
                pass
        """
    assert user.fail(user.script(text), "--timeout", "2").code == 2


FORKS = """
    import os, time
    for _ in range(3):
        if os.fork() == 0:
            time.sleep(600)
    """
DAEMONS = """
    import os, subprocess, time
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for fd in (0, 1, 2):
                os.close(fd)
            time.sleep(600)
        os._exit(0)
    os.wait()
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    time.sleep(0.3)
    """


@pytest.mark.parametrize("text", [FORKS, DAEMONS], ids=["forks", "daemons"])
@pytest.mark.parametrize("end", ["", "time.sleep(600)"], ids=["ends", "hangs"])
def test_what_a_script_starts_does_not_outlive_the_plan(user: User, text: str, end: str) -> None:
    name = user.script(textwrap.dedent(text) + end)
    assert user.fail(name, "--timeout", "3").code == 2


def test_a_fork_that_goes_on_with_the_script_is_not_the_answer(user: User) -> None:
    """The child of a fork may end first; only the script's own process answers."""
    text = "import os, time\nif os.fork():\n    time.sleep(1)\n    raise RuntimeError('mine')"
    outcome = user.fail(user.script(text))
    assert outcome.code == 1
    assert "RuntimeError: mine" in outcome.err


def test_a_script_that_asks_on_standard_input(user: User) -> None:
    outcome = user.fail(user.script("env = input('which env? ')"), "--timeout", "10")
    assert outcome.code == 2
    assert "standard input" in outcome.message
    assert "arguments after --" in outcome.message


def test_a_script_that_reads_standard_input_finds_it_empty(user: User) -> None:
    text = "import sys\nassert sys.stdin.read() == ''"
    assert user.fail(user.script(text), "--timeout", "10").code == 2


def test_a_script_that_asks_for_too_much_memory_is_ended(user: User) -> None:
    """A child may take most of this machine and no more; here, address space stands for it."""
    outcome = user.fail(user.script("b = bytearray(2**50)"))
    assert outcome.code == 1
    assert "MemoryError" in outcome.err


# -- what is not a script --------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["nosuch.py", "no/such/train.py", "nosuch"])
def test_a_missing_file(user: User, target: str) -> None:
    outcome = user.fail(target)
    assert outcome.code == 2
    assert f"there is no file '{target}'" in outcome.message
    assert "train.py" in outcome.message


def test_a_directory(user: User) -> None:
    (user.folder / "runs").mkdir()
    outcome = user.fail("runs")
    assert outcome.code == 2
    assert "is a directory" in outcome.message
    assert "train.py" in outcome.message


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.zip", b"PK\x03\x04\x14\x00\x00\x00\xff\xfe\x00binary"),
        ("train.ipynb", b'{"cells": []}'),
        ("notes.md", b"# Train with PPO, please\n"),
        ("train.sh", b"#!/bin/sh\npython train.py\n"),
    ],
)
def test_a_file_that_is_no_python(user: User, name: str, content: bytes) -> None:
    (user.folder / name).write_bytes(content)
    outcome = user.fail(name)
    assert outcome.code == 2
    assert "no Python" in outcome.message
    assert "Traceback" not in outcome.err


def test_a_script_that_cannot_be_read(user: User) -> None:
    name = user.script("x = 1")
    (user.folder / name).chmod(0)
    if os.access(user.folder / name, os.R_OK):
        pytest.skip("this user may read everything")
    outcome = user.fail(name)
    assert outcome.code == 2
    assert "cannot be read" in outcome.message


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("nosuch_module:make", "No module named 'nosuch_module'"),
        ("json:nosuch", "nosuch"),
        ("json:loads", "missing 1 required positional argument"),
    ],
)
def test_a_factory_that_cannot_be_called(user: User, target: str, says: str) -> None:
    outcome = user.fail(target)
    assert outcome.code == 1
    assert says in outcome.err


# -- wrong words -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--nosuch"], "after --"),
        (["--limit", "banana"], "such as 16GiB"),
        (["--set", "n_envs=0"], "such as n_envs=8"),
        (["--set", "n_envs"], "such as n_envs=8"),
        (["--on", "nosuch"], "a size such as 24GiB"),
        (["-o", "missing/plan.json"], "directory does not exist"),
        (["--format", "pdf"], "pdf"),
        (["--timeout", "-1"], "above zero"),
    ],
    ids=lambda value: "" if isinstance(value, str) else " ".join(value),
)
def test_wrong_options_are_refused_before_anything_runs(
    user: User, words: list[str], says: str
) -> None:
    outcome = user.fail(user.script("open('/dev/tty')\nraise RuntimeError('it ran')"), *words)
    assert outcome.code == 2
    assert says in outcome.err
    assert "it ran" not in outcome.err


TINY = """
    import gymnasium
    from stable_baselines3 import A2C
    A2C("MlpPolicy", gymnasium.make("CartPole-v1"), n_steps=8, device="cpu").learn(64)
    """


@pytest.mark.torch
def test_an_unknown_setting_names_the_known_ones(user: User) -> None:
    outcome = user.fail(user.script(TINY), "--set", "nosuch=3", "--format", "json")
    assert outcome.code == 2
    assert "no setting nosuch" in outcome.message
    assert "n_envs" in outcome.message and "n_steps" in outcome.message


@pytest.mark.torch
def test_an_env_that_fails_in_its_first_step_is_the_scripts_own_failure(user: User) -> None:
    name = user.script(
        """
        import gymnasium
        from stable_baselines3 import A2C

        class Broken(gymnasium.Env):
            observation_space = gymnasium.spaces.Box(0, 1, (3,))
            action_space = gymnasium.spaces.Discrete(2)

            def reset(self, *, seed=None, options=None):
                return self.observation_space.sample(), {}

            def step(self, action):
                raise ZeroDivisionError("in the physics")

        A2C("MlpPolicy", Broken(), n_steps=8, device="cpu").learn(64)
        """
    )
    outcome = user.fail(name)
    assert outcome.code == 1
    assert "ZeroDivisionError: in the physics" in outcome.err
    assert "in step" in outcome.err


# -- libraries that are not there ------------------------------------------------------------------


def without(user: User, *modules: str) -> None:
    """Make these modules impossible to import in whatever the user starts."""
    folder = user.folder.parent / "without"
    for module in modules:
        (folder / module).mkdir(parents=True)
        text = f"raise ModuleNotFoundError(\"No module named '{module}'\", name='{module}')"
        (folder / module / "__init__.py").write_text(text)
    user.environment["PYTHONPATH"] = str(folder)
    user.environment["PYTHONDONTWRITEBYTECODE"] = "1"


@pytest.mark.parametrize(
    ("module", "extra"),
    [("stable_baselines3", "sb3"), ("sb3_contrib", "sb3"), ("torch", "torch")],
)
def test_a_missing_extra_is_named(user: User, module: str, extra: str) -> None:
    without(user, module)
    outcome = user.fail(user.script(f"import {module}"))
    assert outcome.code == 2
    assert module in outcome.message
    assert f"pip install 'memfit[{extra}]'" in outcome.message


def test_a_missing_library_that_is_no_extra_is_the_scripts_own_failure(user: User) -> None:
    outcome = user.fail(user.script("import nosuch_library"))
    assert outcome.code == 1
    assert "No module named 'nosuch_library'" in outcome.err


# -- a result that cannot be written --------------------------------------------------------------


@pytest.mark.parametrize("form", ["terminal", "md", "json"])
def test_a_full_disk_is_no_traceback(form: str) -> None:
    from memfit.cli.output import Format, emit
    from memfit.errors import UsageError
    from memfit.render import plan_blocks, plan_json
    from tests.samples import ppo_plan

    plan = ppo_plan()
    with pytest.raises(UsageError, match="No space left on device"):
        emit(
            Format(form),
            Path("/dev/full"),
            blocks=lambda: plan_blocks(plan),
            data=lambda: plan_json(plan),
        )


# -- memfit itself is ended ------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_plan_that_is_ended_takes_its_child_along(user: User, number: signal.Signals) -> None:
    name = user.script("import time\ntime.sleep(600)")
    with user.start(name) as process:
        deadline = time.monotonic() + 30
        while len(user.running()) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert process.returncode in (128 + number, -number)
    assert "Traceback" not in err
    assert out == ""
    user.nothing_remains()


def test_a_plan_that_is_killed_takes_its_child_along(user: User) -> None:
    """Nobody is left to tidy up, but nothing keeps running."""
    with user.start(user.script("import time\ntime.sleep(600)")) as process:
        deadline = time.monotonic() + 30
        while len(user.running()) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.5)
        process.kill()
        process.wait(timeout=30)
        while user.running() and time.monotonic() < deadline:
            time.sleep(0.05)
    assert user.running() == []
