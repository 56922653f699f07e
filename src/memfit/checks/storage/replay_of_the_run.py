"""MF111: the replay is as long as the whole run.

What: the capacity of a replay is the run's number of steps.

Why: the replay then only grows, to the last step: a longer run needs more memory, and one that
goes over its limit does so hours later (mujoco#1431: Brax's SAC does so unless told otherwise).

Bad:
    replay = ReplayBuffer(total_timesteps, obs_dim)

Good:
    replay = ReplayBuffer(min(total_timesteps, 1_000_000), obs_dim)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, keyword, last_name

CODE = "MF111"
SEVERITY = Severity.INFO
FOUND = ("replay = deque(maxlen=args.total_timesteps)\n",)
_REPLAY = re.compile(r"Replay|^deque$|Memory$")
_RUN = re.compile(
    r"^(total_(time)?_?steps|num_timesteps|max_timesteps|num_train_steps)$", re.IGNORECASE
)
_CAPACITY = ("buffer_size", "capacity", "size", "max_size", "maxlen", "max_replay_size")


def find_in_source(source: Source) -> Iterator[Spot]:
    for call in source.nodes(ast.Call):
        if not _REPLAY.search(last_name(call.func)):
            continue
        given = [keyword(call, name) for name in _CAPACITY] + call.args[:1]
        if any(g is not None and _RUN.search(last_name(g)) for g in given):
            yield Spot(
                call,
                "the replay has room for every step of the run",
                "a capacity of its own, such as min(total_timesteps, 1_000_000)",
            )
