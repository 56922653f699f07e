"""Whether a script divided a callback's frequency is read where it makes the callback."""

from __future__ import annotations

import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from memfit.libraries.sb3.callback_frequency import is_divided, notice_divisions


def callbacks() -> dict[str, Any]:
    """A base and two kinds of callbacks, as the library has them, with memfit's hook on."""

    class BaseCallback:
        def __init__(self, verbose: int = 0) -> None:
            self.verbose = verbose

    class CheckpointCallback(BaseCallback):
        def __init__(self, save_freq: int, save_path: str = "", verbose: int = 0) -> None:
            super().__init__(verbose)
            self.save_freq = save_freq

    class Own(CheckpointCallback):
        def __init__(self, save_freq: int) -> None:
            super().__init__(save_freq)

    module = ModuleType("callbacks")
    vars(module)["BaseCallback"] = BaseCallback
    (hook,) = notice_divisions().values()
    hook(module)
    return {"CheckpointCallback": CheckpointCallback, "Own": Own}


ZOO = """
class Manager:
    def __init__(self):
        self.save_freq, self.n_envs = 10_000, 8

    def create(self):
        self.save_freq = max(self.save_freq // self.n_envs, 1)
        return CheckpointCallback(
            save_freq=self.save_freq,
            verbose=1,
        )

callback = Manager().create()
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("callback = CheckpointCallback(10_000)", False),
        ("callback = CheckpointCallback(save_freq=10_000)", False),
        ("n_envs = 8\ncallback = CheckpointCallback(max(10_000 // n_envs, 1))", True),
        ("n_envs = 8\ncallback = [CheckpointCallback(int(1e5 / n_envs)), 3][0]", True),
        ("n_envs = 8\nfreq = 10_000\nfreq //= n_envs\ncallback = Own(freq)", True),
        ("n = 8\nhow = {'save_freq': 10_000 // n}\ncallback = CheckpointCallback(**how)", True),
        ("steps = 10_000\ncallback = CheckpointCallback(steps // 10)", False),
        ("n = 8\nsteps = 800 // n\ncallback = CheckpointCallback(save_freq=10_000)", False),
        ("n = 8\ncallback = CheckpointCallback(save_freq=100, save_path=str(8 // n))", False),
        (ZOO, True),
    ],
)
def test_a_division_is_seen_where_the_callback_is_made(
    text: str, expected: bool, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(text))
    names = callbacks()
    exec(compile(script.read_text(), script, "exec"), names)
    assert is_divided(names["callback"]) is expected


def test_a_callback_whose_text_cannot_be_read_is_not_divided() -> None:
    names = callbacks()
    exec("n = 8\ncallback = CheckpointCallback(1000 // n)", names)
    assert not is_divided(names["callback"])
    assert not is_divided(object())
