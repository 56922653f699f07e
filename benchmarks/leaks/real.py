"""An environment of others: CartPole that is filmed by Gymnasium's RecordVideo.

Before Gymnasium 1.2.1, each clip was garbage that referred to itself, with all of its frames.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FRAMES = 400


def make_env() -> Any:
    """The environment, filmed every other episode."""
    import gymnasium
    from gymnasium.wrappers import RecordVideo

    env = gymnasium.make("CartPole-v1", render_mode="rgb_array")
    videos = str(Path.cwd() / "videos")
    return RecordVideo(env, videos, episode_trigger=lambda episode: episode % 2 == 0)


def main() -> None:
    """Print the verdict on it as JSON."""
    from importlib.metadata import version

    import memfit

    seen = memfit.profile("benchmarks.leaks.real:make_env", frames=FRAMES, envs=1, observe=False)
    json.dump(
        {
            "gymnasium": version("gymnasium"),
            "verdict": seen.verdict.value,
            "peak_bytes": seen.peak_bytes,
            "notes": list(seen.notes),
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
