"""Real Atari frames: 84 x 84 grey, six games, random actions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

GAMES = ("Breakout", "Pong", "SpaceInvaders", "Qbert", "Seaquest", "MsPacman")


def frames(count: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """As many frames in all, and whether an episode begins with each of them."""
    import ale_py
    import gymnasium
    from gymnasium.wrappers import AtariPreprocessing

    gymnasium.register_envs(ale_py)
    seen = np.empty((count, 84, 84), np.uint8)
    starts = np.zeros(count, np.bool_)
    at = 0
    for i, game in enumerate(GAMES):
        env: Any = gymnasium.make(f"ALE/{game}-v5", frameskip=1)
        env = AtariPreprocessing(env, frame_skip=4, screen_size=84, noop_max=30)
        env.action_space.seed(i)
        frame, _ = env.reset(seed=i)
        until = count * (i + 1) // len(GAMES)
        starts[at] = True
        while at < until:
            seen[at] = frame
            at += 1
            frame, _, ended, cut, _ = env.step(env.action_space.sample())
            if (ended or cut) and at < until:
                frame, _ = env.reset()
                starts[at] = True
        env.close()
    return seen, starts


class Transitions:
    """Stacks of four frames with next observations, cut into episodes of at most `limit` steps.

    A cut keeps the frames: the last next observation is the stack with the frame that follows,
    which then also begins the next episode, repeated four times.
    """

    def __init__(self, seen: NDArray[np.uint8], starts: NDArray[np.bool_], limit: int) -> None:
        self.seen, self.starts, self.limit = seen, starts, limit

    def __iter__(self) -> Any:
        """(observation, next observation, ended, cut), one env."""
        stack, age = np.repeat(self.seen[:1], 4, axis=0), 0
        for at in range(1, len(self.seen)):
            frame = self.seen[at]
            if self.starts[at]:  # the frame that ended the episode was not kept: a step is left out
                stack, age = np.repeat(frame[None], 4, axis=0), 0
                continue
            after = np.concatenate([stack[1:], frame[None]])
            age += 1
            over = at + 1 < len(self.seen) and bool(self.starts[at + 1])
            cut = age >= self.limit and not over
            yield stack[None], after[None], over or cut, cut
            stack = after
            if cut:
                stack, age = np.repeat(frame[None], 4, axis=0), 0
