"""MF310: a replay's capacity is divided by the envs twice.

What: `buffer_size` is divided by `n_envs` for a buffer of stable-baselines3, which does that
itself.

Why: stable-baselines3's capacity counts all envs together; others (ElegantRL) count each env's own.
With 8 envs an eighth of the replay that was meant is kept, and what a plan says by the setting is
eight times too much.

Bad:
    from stable_baselines3 import SAC

    model = SAC("MlpPolicy", env, buffer_size=1_000_000 // n_envs)

Good:
    from stable_baselines3 import SAC

    model = SAC("MlpPolicy", env, buffer_size=1_000_000)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from memfit.checks._sb3 import OFF_POLICY, PACKAGES
from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, argument, calls, last_name, origin

CODE = "MF310"
SEVERITY = Severity.WARNING
_ENVS = re.compile(r"^(n|num)_envs$|^nb?_?env(s)?$", re.IGNORECASE)
_BUFFERS = {"ReplayBuffer", "DictReplayBuffer"}


def find_in_source(source: Source) -> Iterator[Spot]:
    for call in calls(source, PACKAGES, OFF_POLICY | _BUFFERS):
        place = 0 if last_name(call.func).endswith("Buffer") else 3
        given = argument(call, "buffer_size", place)
        held = origin(source, given)
        for part in ast.walk(held) if held is not None else []:
            divides = isinstance(part, ast.BinOp) and isinstance(part.op, ast.FloorDiv | ast.Div)
            if divides and _ENVS.search(last_name(part.right)):  # type: ignore[attr-defined]
                yield Spot(
                    given or call,
                    "stable-baselines3 divides buffer_size by the envs itself",
                    f"buffer_size={source.segment(part.left)}",  # type: ignore[attr-defined]
                )
