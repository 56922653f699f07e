"""MF110: each agent has a replay of its own.

What: one replay buffer is made for each agent, in a loop or a comprehension over agents.

Why: agents that step together see the same state: shared observations, rewards and ends are stored
once for each of them (MARLlib#142: 80 GB). One buffer with a row for each step of all agents stores
them once, and its size is one setting.

Bad:
    buffers = [ReplayBuffer(capacity, obs_dim) for _ in range(n_agents)]

Good:
    buffer = ReplayBuffer(capacity, n_agents, obs_dim)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, last_name, loops_around

CODE = "MF110"
SEVERITY = Severity.WARNING
FOUND = ("for agent in env.agents:\n    replays[agent] = ReplayMemory(10_000)\n",)
CLEAN = ("for seed in range(4):\n    replay = ReplayBuffer(10_000)\n",)
_REPLAY = re.compile(r"Replay(Buffer|Memory)?$|^ReplayBuffer")
_AGENTS = re.compile(r"agents?$", re.IGNORECASE)


def find_in_source(source: Source) -> Iterator[Spot]:
    for call in source.nodes(ast.Call):
        if not _REPLAY.search(last_name(call.func)):
            continue
        around = [n.iter for n in loops_around(source, call) if isinstance(n, ast.For)]
        for above in source.ancestors(call):
            if isinstance(above, ast.ListComp | ast.DictComp | ast.GeneratorExp):
                around += [g.iter for g in above.generators]
        if any(_over_agents(over) for over in around):
            yield Spot(
                call,
                "a replay is made for each agent",
                "one replay with a row for each step of all agents",
            )


def _over_agents(over: ast.expr) -> bool:
    names = [last_name(n) for n in ast.walk(over)]
    return any(_AGENTS.search(name) for name in names)
