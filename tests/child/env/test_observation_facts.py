"""What is said of observations and of arrays that envs have alike, without a child."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memfit.child.env.made_envs import Slot
from memfit.child.env.observation_facts import observed
from tests.api.odd_envs import Plain

LEVEL = np.arange(40_000, dtype=np.float32)


class Rich(Plain):
    """Stacked frames, an array that is the same each time, a view, and a part of another array."""

    def __init__(self) -> None:
        super().__init__()
        self.level = LEVEL.copy()
        self.scratch = LEVEL.copy()
        self.same = np.arange(16, dtype=np.float32)
        self.frames = np.zeros((4, 8), np.float32)
        self.shared = LEVEL

    def see(self) -> Any:
        self.frames = np.concatenate([self.frames[1:], np.full((1, 8), self.t + 1, np.float32)])
        large = np.arange(100, dtype=np.int64) + self.t
        return {
            "frames": self.frames,
            "same": self.same,
            "view": np.ones(1000)[:10],
            "large": large,
            "part": large[20:40].copy(),
        }

    def reset(self, seed: int | None = None) -> Any:
        super().reset(seed)
        return self.see(), {}

    def step(self, action: Any) -> Any:
        self.scratch += 1
        return self.see(), *super().step(action)[1:]


class Child:
    """As much of the child as facts are gathered from."""

    def __init__(self, count: int) -> None:
        self.slots = [Slot(Rich()) for _ in range(count)]
        self.frames = self.episodes = 0
        for slot in self.slots:
            slot.reset()

    def step_to(self, soft: int, hard: int) -> None:
        self.frames = hard
        for slot in self.slots:
            if slot.stepped(slot.env.step(0)):
                slot.reset()


@pytest.fixture(scope="module")
def found() -> Any:
    return observed(Child(2))  # type: ignore[arg-type]


def test_parts_of_an_observation_are_told_apart(found: Any) -> None:
    parts = {part.key: part for part in found.observation}
    assert set(parts) == {"frames", "same", "view", "large", "part"}
    assert parts["frames"].repeats == 0.75 and parts["frames"].fresh
    assert not parts["same"].fresh and parts["same"].repeats == 0
    assert parts["view"].view_of == 8000 and parts["view"].bytes == 80
    assert parts["part"].within == "large" and not parts["large"].within


def test_arrays_that_each_env_has_a_copy_of_are_shareable(found: Any) -> None:
    # What is written to, or is one array already, is not.
    assert [one.path for one in found.shareable] == ["env.level"]
    assert found.shareable[0].saves_bytes == LEVEL.nbytes and found.shareable[0].copies == 2


def test_what_a_step_allocates_is_weighed(found: Any) -> None:
    assert 8000 <= found.allocated_per_step < 100_000  # np.ones(1000) and a little
    assert found.copied_per_step == 4 * 8 * 4 + 100 * 8 + 20 * 8


def test_of_one_env_nothing_can_be_shared() -> None:
    assert observed(Child(1)).shareable == ()  # type: ignore[arg-type]
