"""Makes the environments of a target, and steps each kind of them in the same way."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from memfit.model.profile import Stepping
from memfit.sources.env_target import GYM

Policy = Callable[["Slot"], Any]
# Packages whose environments Gymnasium knows only once they are imported.
_REGISTERED_BY = {"ALE": "ale_py", "MiniGrid": "minigrid", "BabyAI": "minigrid"}


class NoEnvironment(Exception):
    """The target cannot be stepped: what it is instead, and what to do."""


class WrongShape(Exception):
    """The environment does not return what its kind of environment returns."""


class Slot:
    """One environment that is stepped: what it saw last, and how its episodes end."""

    agents = 1

    def __init__(self, env: Any) -> None:
        self.env = env
        self.observation: Any = None
        self.episodes = 0

    @property
    def name(self) -> str:
        """The class of the environment itself, without its wrappers."""
        kind = type(self.unwrapped)
        return f"{kind.__module__}.{kind.__qualname__}"

    @property
    def unwrapped(self) -> Any:
        return getattr(self.env, "unwrapped", self.env)

    def reset(self, seed: int | None = None) -> None:
        """Begin an episode."""
        self.begun(self.env.reset(seed=seed) if seed is not None else self.env.reset())

    def begun(self, found: Any) -> None:
        """Take what a reset returned."""
        if not isinstance(found, tuple) or len(found) != 2:
            raise WrongShape(
                f"reset() of {self.name} returned {_told(found)}, and not an observation with a "
                "dictionary of infos: return both, as Gymnasium says"
            )
        self.observation = found[0]

    def stepped(self, found: Any) -> bool:
        """Take what a step returned; whether the episode has ended."""
        if not isinstance(found, tuple) or len(found) != 5:
            raise WrongShape(
                f"step() of {self.name} returned {_told(found)}, and not (observation, reward, "
                "terminated, truncated, info): return all five, as Gymnasium says"
            )
        self.observation, _, terminated, truncated, _ = found
        if terminated or truncated:
            self.episodes += 1
            return True
        return False

    def sample(self) -> Any:
        """A random action."""
        return self.env.action_space.sample()

    def seed_actions(self, seed: int) -> None:
        """Let random actions be the same at each run."""
        self.env.action_space.seed(seed)

    def check(self) -> None:
        """Refuse an observation that is not as its space says."""
        _check(self.observation, getattr(self.env, "observation_space", None), self.name, "")


class VectorSlot(Slot):
    """A vector env of Gymnasium: it begins episodes by itself."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.agents = int(env.num_envs)

    def stepped(self, found: Any) -> bool:
        if not isinstance(found, tuple) or len(found) != 5:
            raise WrongShape(f"step() of {self.name} returned {_told(found)}, not five arrays")
        self.observation, _, terminated, truncated, _ = found
        ended = int((terminated | truncated).sum())
        self.episodes += ended
        return ended > 0


class Sb3Slot(VectorSlot):
    """A VecEnv of stable-baselines3: the older form of both calls."""

    def reset(self, seed: int | None = None) -> None:
        if seed is not None:
            self.env.seed(seed)
        self.observation = self.env.reset()

    def stepped(self, found: Any) -> bool:
        self.observation, _, dones, _ = found
        ended = int(dones.sum())
        self.episodes += ended
        return ended > 0

    def sample(self) -> Any:
        import numpy as np

        return np.stack([self.env.action_space.sample() for _ in range(self.agents)])

    def check(self) -> None:
        """Nothing: a VecEnv copies observations into arrays that are as its space says."""


class ParallelSlot(Slot):
    """A parallel environment of PettingZoo: dictionaries by agent."""

    def stepped(self, found: Any) -> bool:
        if not isinstance(found, tuple) or len(found) != 5:
            raise WrongShape(
                f"step() of {self.name} returned {_told(found)}, not five dictionaries"
            )
        self.observation = found[0]
        if self.env.agents:
            return False
        self.episodes += 1
        return True

    def sample(self) -> Any:
        return {agent: self.env.action_space(agent).sample() for agent in self.env.agents}

    def seed_actions(self, seed: int) -> None:
        for number, agent in enumerate(self.env.possible_agents):
            self.env.action_space(agent).seed(seed + number)

    def check(self) -> None:
        for agent, seen in self.observation.items():
            _check(seen, self.env.observation_space(agent), self.name, f" of {agent}")


def make(stepping: Stepping) -> list[Slot]:
    """The environments of a target, each made anew."""
    factory = _factory(stepping)
    if stepping.workers:
        return [_in_workers(factory, stepping.n_envs)]
    made = [_slot(factory(), stepping.target) for _ in range(stepping.n_envs)]
    if len({id(slot.env) for slot in made}) < len(made):
        raise NoEnvironment(
            f"{stepping.target} gives the same environment each time, so that the cost of one more "
            "cannot be measured: give a function that makes one, or --envs 1"
        )
    return made


def _factory(stepping: Stepping) -> Callable[[], Any]:
    target = stepping.target
    sys.path.insert(0, str(Path.cwd()))
    if stepping.kind == GYM:
        return partial(_registered(target), **stepping.options)
    module_name, _, name = target.partition(":")
    module = importlib.import_module(module_name)
    if not hasattr(module, name):
        raise NoEnvironment(f"there is no {name} in {module_name}: check its spelling")
    found = getattr(module, name)
    if _is_env(found) and not isinstance(found, type):
        return lambda: found
    if not callable(found):
        raise NoEnvironment(
            f"{target} is a {type(found).__name__}: name a class, or a function that makes one"
        )
    return partial(found, **stepping.options)


def _registered(target: str) -> Callable[..., Any]:
    """What makes an environment by its id; `package:id` and well-known ids import a package."""
    import gymnasium

    package, _, name = target.rpartition(":")
    package = package or _REGISTERED_BY.get(re.split(r"[/-]", name)[0], "")
    if package and importlib.util.find_spec(package) is not None:
        importlib.import_module(package)
    try:
        gymnasium.spec(name)
    except gymnasium.error.Error as error:
        what = f"Gymnasium knows no {name}: {error}"
        if package:
            raise NoEnvironment(f"{what} Is {package} installed beside this Python?") from None
        raise NoEnvironment(f"{what} If a package brings it, write package:{name}") from None
    return partial(gymnasium.make, name)


def _is_env(thing: Any) -> bool:
    return hasattr(thing, "step") and hasattr(thing, "reset")


def _slot(env: Any, target: str) -> Slot:
    if not _is_env(env):
        raise NoEnvironment(
            f"{target} gives {_told(env)}, which has no step() and reset(): name what makes an "
            "environment"
        )
    if hasattr(env, "num_envs"):
        return VectorSlot(env) if hasattr(env, "single_action_space") else Sb3Slot(env)
    if hasattr(env, "agent_iter"):
        raise NoEnvironment(
            f"{target} lets its agents step in turns: name its parallel_env, or a function that "
            "gives pettingzoo.utils.aec_to_parallel of it"
        )
    if hasattr(env, "possible_agents"):
        return ParallelSlot(env)
    if not hasattr(env, "action_space"):
        raise NoEnvironment(
            f"{type(env).__name__} of {target} has no action_space: give it one, from which "
            "random actions can be drawn"
        )
    return Slot(env)


def _in_workers(factory: Callable[[], Any], count: int) -> Slot:
    from gymnasium.vector import AsyncVectorEnv

    one = _slot(factory(), "")
    if hasattr(one.env, "close"):
        one.env.close()
    if type(one) is not Slot:
        raise NoEnvironment("workers have one environment each, and this one has several agents")
    del one
    return VectorSlot(AsyncVectorEnv([factory] * count, shared_memory=False))


def _told(thing: Any) -> str:
    """What something is, in a few words."""
    if thing is None:
        return "nothing"
    if isinstance(thing, tuple):
        return f"a tuple of {len(thing)}"
    return f"a {type(thing).__name__}"


def _check(seen: Any, space: Any, name: str, where: str) -> None:
    parts = getattr(space, "spaces", None)
    if isinstance(parts, dict):
        if not isinstance(seen, dict):
            raise WrongShape(
                f"an observation{where} of {name} is {_what(seen)}, and its space says a "
                "dictionary: make them agree"
            )
        if missing := sorted(set(parts) - set(seen)):
            raise WrongShape(f"an observation{where} of {name} lacks {', '.join(missing)}")
        for key, part in parts.items():
            _check(seen[key], part, name, f"[{key!r}]{where}")
        return
    shape, dtype = getattr(space, "shape", None), getattr(space, "dtype", None)
    if shape is None or _shape(seen) == tuple(shape):
        return
    raise WrongShape(
        f"an observation{where} of {name} is {_what(seen)}, and its space says "
        f"{dtype}{list(shape)}: make them agree"
    )


def _shape(seen: Any) -> tuple[int, ...] | None:
    """The shape of an array, or of lists of numbers; nothing where it has none."""
    if hasattr(seen, "shape"):
        return tuple(seen.shape)
    import numpy as np

    try:
        return np.shape(seen) if seen is not None else None
    except ValueError:  # lists of several lengths
        return None


def _what(seen: Any) -> str:
    """An observation in a few words."""
    if hasattr(seen, "shape") and hasattr(seen, "dtype"):
        return f"{seen.dtype}{list(seen.shape)}"
    return _told(seen)
