"""What the text of a script says of its stable-baselines3 models, envs and callbacks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from memfit.syntax import (
    Arguments,
    BindingKind,
    Source,
    argument,
    calls,
    constant,
    in_package,
    last_name,
    number,
    origins,
)

PACKAGES = ("stable_baselines3", "sb3_contrib")
ON_POLICY = {"PPO": 2048, "A2C": 5, "TRPO": 2048, "MaskablePPO": 2048, "RecurrentPPO": 128}
BATCHES = {"PPO": 64, "MaskablePPO": 64, "RecurrentPPO": 128}
OFF_POLICY = {"DQN", "SAC", "TD3", "DDPG", "QRDQN", "TQC", "CrossQ"}
_WRAPPERS = {"VecFrameStack", "VecNormalize", "VecTransposeImage", "VecMonitor", "VecVideoRecorder"}
_REPLAY = 1_000_000
_DEPTH = 6


@dataclass(frozen=True)
class Model:
    """One call that makes a model; what cannot be told is None."""

    source: Source
    call: ast.Call

    @property
    def algorithm(self) -> str:
        return self.source.qualified(self.call.func).split(".")[-1]

    @property
    def on_policy(self) -> bool:
        return self.algorithm in ON_POLICY

    @property
    def policy(self) -> str:
        return str(constant(self.source, argument(self.call, "policy", 0)) or "")

    @property
    def env(self) -> ast.expr | None:
        return argument(self.call, "env", 1)

    @property
    def n_envs(self) -> int | None:
        return n_envs(self.source, self.env)

    @property
    def n_steps(self) -> int | None:
        return self._number("n_steps", 3, ON_POLICY.get(self.algorithm))

    @property
    def batch_size(self) -> int | None:
        place = 4 if self.on_policy else 5
        return self._number("batch_size", place, BATCHES.get(self.algorithm))

    @property
    def buffer_size(self) -> int | None:
        return self._number("buffer_size", 3, _REPLAY)

    @property
    def rollout(self) -> int | None:
        """Samples of one rollout."""
        steps, envs = self.n_steps, self.n_envs
        return None if steps is None or envs is None else steps * envs

    @property
    def names(self) -> list[str]:
        """The variables that it is given to."""
        above = self.source.parent(self.call)
        if isinstance(above, ast.Attribute):  # PPO(...).learn(...)
            learned = self.source.parent(above)
            above = self.source.parent(learned) if learned is not None else None
        targets = above.targets if isinstance(above, ast.Assign) else []
        return [t.id for t in targets if isinstance(t, ast.Name)]

    def learns(self) -> Iterator[ast.Call]:
        """The calls of its learn(), where its name can only be this model."""
        for call in self.source.nodes(ast.Call):
            if isinstance(call.func, ast.Attribute) and call.func.attr == "learn":
                held = call.func.value
                made = origins(self.source, held)
                if held is self.call or (isinstance(held, ast.Name) and made == [self.call]):
                    yield call

    @property
    def total(self) -> int | None:
        """The steps of its only learn()."""
        found = list(self.learns())
        return (
            number(self.source, argument(found[0], "total_timesteps", 0))
            if found[1:] == [] and found
            else None
        )

    def lacks(self, name: str) -> bool:
        return Arguments(self.call).lacks(name)

    def _number(self, name: str, place: int, default: int | None) -> int | None:
        given = argument(self.call, name, place)
        if given is not None:
            return number(self.source, given)
        return default if Arguments(self.call).complete else None


def models(source: Source) -> Iterator[Model]:
    """The models that a script makes with a policy and an env, to learn with them."""
    if not learns(source) and any(last_name(c.func) == "load" for c in source.nodes(ast.Call)):
        return  # an evaluation
    for call in calls(source, PACKAGES, {*ON_POLICY, *OFF_POLICY}):
        if argument(call, "env", 1) is not None:
            yield Model(source, call)


def learns(source: Source) -> bool:
    """Whether a script trains anything with learn()."""
    return any(last_name(call.func) == "learn" for call in source.nodes(ast.Call))


def made_of(source: Source, node: ast.AST | None, depth: int = _DEPTH) -> Iterator[ast.Call]:
    """The calls that make an env, its wrappers first: through names that are given anew."""
    for one in origins(source, node):
        if isinstance(one, ast.Call) and depth:
            yield one
            inner = argument(one, "venv", 0) or argument(one, "env", 0)
            if last_name(one.func) in _WRAPPERS and inner is not None:
                if (
                    isinstance(inner, ast.Name)
                    and one in origins(source, node)
                    and isinstance(node, ast.Name)
                    and inner.id == node.id
                ):
                    continue  # env = VecNormalize(env): the others are told beside it
                yield from made_of(source, inner, depth - 1)


def n_envs(source: Source, node: ast.AST | None) -> int | None:
    """How many envs an expression holds, where that is certain."""
    if isinstance(node, ast.Constant):
        return 1  # a model makes one env of an id
    if isinstance(node, ast.Name) and not _is_plain(source, node):
        return None
    found = {count for count in (_envs_of(source, c) for c in made_of(source, node)) if count != 0}
    return found.pop() if len(found) == 1 else None


def _is_plain(source: Source, node: ast.Name) -> bool:
    return all(b.kind is BindingKind.VALUE for b in source.bindings(node))


def _envs_of(source: Source, call: ast.Call) -> int | None:
    """The envs of one call: 0 for a wrapper, None if unknown."""
    name = last_name(call.func)
    if name in _WRAPPERS:
        return 0
    if name in ("make_vec_env", "make_atari_env"):
        given = argument(call, "n_envs", 1)
        return (
            number(source, given)
            if given is not None
            else (1 if Arguments(call).complete else None)
        )
    if name in ("DummyVecEnv", "SubprocVecEnv", "LightVecEnv"):
        return _length(source, argument(call, "env_fns", 0))
    if in_package(source, call.func, ("gymnasium", "gym"), ("make",)):
        return 1
    return None


def _length(source: Source, node: ast.AST | None) -> int | None:
    found = origins(source, node)
    if len(found) != 1:
        return None
    match found[0]:
        case ast.List(elts=items) if not any(isinstance(i, ast.Starred) for i in items):
            return len(items)
        case ast.BinOp(op=ast.Mult(), left=ast.List(elts=[_]), right=times):
            return number(source, times)
        case ast.ListComp(generators=[ast.comprehension(iter=ast.Call() as over, ifs=[])]):
            if last_name(over.func) == "range" and len(over.args) == 1:
                return number(source, over.args[0])
    return None
