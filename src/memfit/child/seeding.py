"""Gives every random generator of a run a seed, so that two runs of it can be compared."""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable
from types import ModuleType
from typing import Any

from memfit.model.training import ModuleHook

SEED = 0


def seed_all() -> dict[str, ModuleHook]:
    """Seed Python now; hooks, by module, that seed what a run imports.

    A script that gives seeds itself has its own. Generators that are asked for without one get one
    after the other, in the order in which they are made.
    """
    random.seed(SEED)
    return {
        "numpy.random": _seed_numpy,
        "torch.random": _seed_torch,
        "gymnasium.utils.seeding": lambda module: _give_seeds(module, "np_random"),
    }


def _seed_numpy(module: Any) -> None:
    module.seed(SEED)
    _give_seeds(module, "default_rng")


def _seed_torch(module: Any) -> None:
    # `manual_seed` asks for devices of the package, which is not complete yet.
    module.default_generator.manual_seed(SEED)


def _give_seeds(module: ModuleType, name: str) -> None:
    """Let a function that takes None for a seed get a number in its place."""
    make: Callable[..., Any] = getattr(module, name)
    numbers = itertools.count(SEED)

    @functools.wraps(make)
    def seeded(seed: Any = None, *args: Any, **options: Any) -> Any:
        return make(next(numbers) if seed is None else seed, *args, **options)

    setattr(module, name, seeded)
