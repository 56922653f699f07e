"""Actions at random, from a policy, and from a recording."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memfit.child.env.made_envs import NoEnvironment, ParallelSlot, Slot
from memfit.child.env.policies import policy_of
from tests.api.odd_envs import Parallel, Plain


def always_two(observation: Any) -> int:
    return 2


class Model:
    def predict(self, observation: Any) -> tuple[int, None]:
        return 3, None


def slot() -> Slot:
    made = Slot(Plain())
    made.reset()
    return made


@pytest.mark.parametrize(("name", "action"), [("always_two", 2), ("Model", 3)])
def test_a_policy_may_be_a_function_or_a_model(name: str, action: int) -> None:
    assert policy_of(f"{__name__}:{name}")(slot()) == action


def test_recorded_actions_begin_again(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([4, 5]))
    policy, one = policy_of(str(tmp_path / "a.npy")), slot()
    assert [policy(one) for _ in range(5)] == [4, 5, 4, 5, 4]


def test_at_random_each_agent_has_an_action() -> None:
    made = ParallelSlot(Parallel())
    made.reset()
    assert policy_of("random")(made) == {"first": 0, "second": 0}


@pytest.mark.parametrize("text", ["sometimes", "missing.npy", f"{__name__}:Path.cwd", "tests:x"])
def test_what_is_no_policy_is_refused(text: str) -> None:
    with pytest.raises(NoEnvironment):
        policy_of(text)
