"""MF409: every worker opens the device.

What: what makes the envs of worker processes puts something on the card, or loads a model there.

Why: each process that touches a card has a context of its own there, 300 to 500 MiB, and the
libraries of CUDA in RAM (SB3#2116). Workers that need a network can have it on the CPU.

Bad:
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import SubprocVecEnv

    def make_env():
        return SelfPlay(PPO.load("opponent"))

    env = SubprocVecEnv([make_env] * 8)

Good:
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import SubprocVecEnv

    def make_env():
        return SelfPlay(PPO.load("opponent", device="cpu"))

    env = SubprocVecEnv([make_env] * 8)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks._sb3 import OFF_POLICY, ON_POLICY, PACKAGES
from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Arguments, Source, argument, constant, last_name

CODE = "MF409"
SEVERITY = Severity.WARNING
FOUND = (
    (
        "from gymnasium.vector import AsyncVectorEnv\n"
        "env = AsyncVectorEnv([lambda: Game(Net().to('cuda')) for _ in range(4)])\n"
    ),
)
_WORKERS = {"SubprocVecEnv": "env_fns", "AsyncVectorEnv": "env_fns"}


def find_in_source(source: Source) -> Iterator[Spot]:
    for call in source.nodes(ast.Call):
        if last_name(call.func) not in _WORKERS:
            continue
        makers = argument(call, "env_fns", 0)
        for root in _run_there(source, makers):
            for node in ast.walk(root):
                if isinstance(node, ast.Call) and _opens(source, node):
                    yield Spot(
                        node, "every worker opens the device by this", 'device="cpu" in workers'
                    )


def _run_there(source: Source, makers: ast.AST | None) -> Iterator[ast.AST]:
    """Lambdas, and functions of this file that are named or called to make one."""
    for node in ast.walk(makers) if makers is not None else []:
        if isinstance(node, ast.Lambda):
            yield node
        elif isinstance(node, ast.Name):
            found = source.definition(node)
            if isinstance(found, ast.FunctionDef):
                yield found


def _opens(source: Source, call: ast.Call) -> bool:
    name = last_name(call.func)
    if name == "cuda" and isinstance(call.func, ast.Attribute):
        return True
    if name == "to":
        return str(constant(source, argument(call, "device", 0)) or "").startswith("cuda")
    parts = source.qualified(call.func).split(".")
    loads = name == "load" and len(parts) > 2 and parts[-2] in {*ON_POLICY, *OFF_POLICY}
    return loads and parts[0] in PACKAGES and Arguments(call).lacks("device", 2)
