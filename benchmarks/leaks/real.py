"""Environments of others that are known to keep memory, as they come by version.

`filmed` is CartPole by Gymnasium's RecordVideo: before Gymnasium 1.2.1, each clip was garbage that
referred to itself, with all of its frames. `lander` is LunarLander, whose Box2D is a library in
C++: what it keeps for an episode is also counted by hand, by malloc's own figures in a plain loop.
"""

from __future__ import annotations

import gc
import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

_WARM, _EPISODES = 20, 60


def make_filmed() -> Any:
    """CartPole, filmed every other episode."""
    import gymnasium
    from gymnasium.wrappers import RecordVideo

    env = gymnasium.make("CartPole-v1", render_mode="rgb_array")
    videos = str(Path.cwd() / "videos")
    return RecordVideo(env, videos, episode_trigger=lambda episode: episode % 2 == 0)


def make_lander() -> Any:
    """LunarLander."""
    import gymnasium

    return gymnasium.make("LunarLander-v3")


def by_hand() -> float:
    """What malloc has given out for an episode of LunarLander in a plain loop, in bytes."""
    from memfit.inside.pools import malloc_figures

    env = make_lander()
    env.reset(seed=0)
    env.action_space.seed(0)

    def used(episodes: int) -> int:
        for _ in range(episodes):
            env.reset()
            over = False
            while not over:
                _, _, terminated, truncated, _ = env.step(env.action_space.sample())
                over = terminated or truncated
        gc.collect()
        return int(malloc_figures().uordblks)

    before = used(_WARM)
    return (used(_EPISODES) - before) / _EPISODES


# What is profiled: its factory, frames, name, and the package whose version matters.
SEEN = {
    "filmed": ("make_filmed", 400, "CartPole filmed by RecordVideo of Gymnasium", "gymnasium"),
    "lander": ("make_lander", 1000, "LunarLander of Gymnasium, with Box2D", "box2d"),
}


def main(which: str) -> None:
    """Print the verdict on it as JSON."""
    import memfit

    factory, frames, name, package = SEEN[which]
    seen = memfit.profile(f"benchmarks.leaks.real:{factory}", frames=frames, envs=1, observe=False)
    found = {
        "env": f"{name} {version(package)}",
        "verdict": seen.verdict.value,
        "peak_bytes": seen.peak_bytes,
        "bytes_per_episode": round(seen.judgement.bytes_per_episode),
        "notes": list(seen.notes),
    }
    if which == "lander":
        found["bytes_per_episode_by_hand"] = round(by_hand())
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
