"""MF504: training runs with a window.

What: the env that a model trains in is made with `render_mode="human"`.

Why: each env then has a window and its surfaces, and waits for the screen at every step; on a
machine without a screen it fails. A window is for looking at a trained policy.

Bad:
    import gymnasium as gym
    from stable_baselines3 import PPO

    env = gym.make("CartPole-v1", render_mode="human")
    model = PPO("MlpPolicy", env)
    model.learn(100_000)

Good:
    import gymnasium as gym
    from stable_baselines3 import PPO

    env = gym.make("CartPole-v1")
    model = PPO("MlpPolicy", env)
    model.learn(100_000)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks._sb3 import models
from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, constant, dotted, in_package, keyword, last_name

CODE = "MF504"
SEVERITY = Severity.WARNING
FOUND = (
    (
        "import gymnasium as gym\nenv = gym.make('CartPole-v1', render_mode='human')\n"
        "for i in range(9):\n    env.step(act())\n    loss.backward()\n"
    ),
)
CLEAN = (
    (
        "import gymnasium as gym\nfrom stable_baselines3 import PPO\n"
        "env = gym.make('CartPole-v1', render_mode='human')\nmodel = PPO.load('a', env=env)\n"
        "env.step(model.predict(o)[0])\n"
    ),
)


def find_in_source(source: Source) -> Iterator[Spot]:
    trained = {dotted(m.env) for m in models(source)} - {""}
    for call in source.nodes(ast.Call):
        if not in_package(source, call.func, ("gymnasium", "gym"), ("make",)):
            continue
        if constant(source, keyword(call, "render_mode")) != "human":
            continue
        above = source.parent(call)
        name = dotted(above.targets[0]) if isinstance(above, ast.Assign) else ""
        alone = len(source.bindings_in(source.scope(call), name)) == 1
        if name and alone and (name in trained or _learns_with(source, name)):
            yield Spot(call, f"{name} shows a window while it trains", "leave render_mode out")


def _learns_with(source: Source, name: str) -> bool:
    """Whether it is stepped in a loop that learns."""
    for loop in [*source.nodes(ast.For), *source.nodes(ast.While)]:
        called = {dotted(n.func) for n in ast.walk(loop) if isinstance(n, ast.Call)}
        if f"{name}.step" in called and "backward" in {c.split(".")[-1] for c in called}:
            return True
    return any(last_name(c.func) == "fit" and name in map(dotted, c.args) for c in _calls(source))


def _calls(source: Source) -> list[ast.Call]:
    return source.nodes(ast.Call)
