"""Made-up envs whose observations are windows over time, or are not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from hypothesis import strategies as st
from numpy.typing import NDArray

Array = NDArray[Any]

KINDS = ("first", "last", "history", "mixed", "columns", "newest_first", "noise", "still")
DTYPES = ("u1", "i2", "f4", "f8")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What the envs are like."""

    kind: str
    dtype: str
    n_envs: int
    length: int
    new: int
    lengths: tuple[int, ...]  # of episodes
    refill: str  # "zeros" or "repeat"
    few: bool  # few different numbers, so that windows look like others
    seed: int

    @property
    def space(self) -> spaces.Box:
        shape = Stream(self).reset_all().shape[1:]
        low, high = (0, 255) if self.dtype == "u1" else (-1000, 1000)
        return spaces.Box(low, high, shape, np.dtype(self.dtype).type)


plans = st.builds(
    Plan,
    kind=st.sampled_from(KINDS),
    dtype=st.sampled_from(DTYPES),
    n_envs=st.integers(1, 4),
    length=st.integers(2, 6),
    new=st.integers(1, 2),
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=4).map(tuple),
    refill=st.sampled_from(("zeros", "repeat")),
    few=st.booleans(),
    seed=st.integers(0, 2**16),
)


class Stream:
    """Envs that step together and begin again by themselves, as vector envs do."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.rng = np.random.default_rng(plan.seed)
        self.hist: list[Array] = [np.empty(0)] * plan.n_envs
        self.age = [0] * plan.n_envs
        self.episode = [0] * plan.n_envs
        self.target = [0.0] * plan.n_envs

    @property
    def hist_size(self) -> int:
        """Numbers of an observation that are a window."""
        return int(self.plan.length * (6 if self.plan.kind in ("first", "last") else 2))

    def numbers(self, *shape: int) -> Array:
        top = 3 if self.plan.few else 200
        values = self.rng.integers(0, top, shape).astype(self.plan.dtype)
        if self.plan.dtype.startswith("f"):
            values[values == 1] = -0.0
            values[values == 2] = np.nan
        return values

    def frame(self) -> Array:
        return self.numbers(3, 2) if self.plan.kind in ("first", "last") else self.numbers(2)

    def reset_all(self) -> Array:
        return np.stack([self.reset(env) for env in range(self.plan.n_envs)])

    def reset(self, env: int) -> Array:
        plan, frame = self.plan, self.frame()
        rows = [frame if plan.refill == "repeat" else np.zeros_like(frame)] * plan.length
        rows[-1] = frame
        self.hist[env] = np.stack(rows)
        self.age[env] = 0
        self.target[env] = float(self.rng.integers(0, 5))
        return self.observe(env)

    def observe(self, env: int) -> Array:
        hist, kind = self.hist[env], self.plan.kind
        shapes: dict[str, Callable[[], Array]] = {
            "first": lambda: hist,
            "last": lambda: np.moveaxis(hist, 0, -1),
            "history": lambda: hist.reshape(-1),
            "columns": lambda: hist.T.reshape(-1),
            "newest_first": lambda: hist[::-1].reshape(-1),
            "mixed": lambda: np.concatenate(
                [self.numbers(1), hist.reshape(-1), np.array([self.target[env]] * 2)]
            ),
            "noise": lambda: self.numbers(7),
            "still": lambda: np.full(6, self.target[env]),
        }
        return np.array(shapes[kind](), self.plan.dtype)

    def step(self) -> tuple[Array, Array, Array, Array]:
        """The observations after a step, those before any reset, and what ended how."""
        plan = self.plan
        after, last = [], []
        done = np.zeros(plan.n_envs, np.bool_)
        cut = np.zeros(plan.n_envs, np.bool_)
        for env in range(plan.n_envs):
            new = np.stack([self.frame() for _ in range(plan.new)])
            self.hist[env] = np.concatenate([self.hist[env], new])[-plan.length :]
            self.age[env] += 1
            seen = self.observe(env)
            last.append(seen)
            if self.age[env] >= plan.lengths[(self.episode[env] + env) % len(plan.lengths)]:
                done[env], cut[env] = True, self.rng.random() < 0.5
                self.episode[env] += 1
                seen = self.reset(env)
            after.append(seen)
        return np.stack(after), np.stack(last), done, cut


def same_bits(a: Any, b: Any) -> bool:
    """Whether two tensors, or trees of them, are equal to the bit."""
    if a is None or b is None:
        return a is b
    if isinstance(a, dict):
        return set(a) == set(b) and all(same_bits(a[k], b[k]) for k in a)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(same_bits(x, y) for x, y in zip(a, b, strict=True))
    a, b = np.asarray(a), np.asarray(b)
    return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
