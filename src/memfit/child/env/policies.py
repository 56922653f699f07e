"""Where actions come from: at random, from a policy that is given, or from a recording."""

from __future__ import annotations

import importlib
import itertools
import json
from pathlib import Path
from typing import Any

from memfit.child.env.made_envs import NoEnvironment, Policy, Slot

RANDOM = "random"


def policy_of(text: str) -> Policy:
    """A function from a slot to its next action."""
    if text == RANDOM:
        return at_random
    if text.endswith((".npy", ".json")):
        return _recorded(Path(text))
    module, colon, name = text.partition(":")
    if not colon or not name.isidentifier():
        raise NoEnvironment(
            f"--policy {text} is not known: give random, module:policy, or a file of actions "
            "(.npy, .json)"
        )
    found = getattr(importlib.import_module(module), name, None)
    if isinstance(found, type):
        found = found()
    predict = getattr(found, "predict", None)
    if callable(predict):  # as models of stable-baselines3 do
        return lambda slot: predict(slot.observation)[0]
    if not callable(found):
        raise NoEnvironment(f"--policy {text} is no function of an observation")
    return lambda slot: found(slot.observation)


def at_random(slot: Slot) -> Any:
    """A random action, as each kind of environment takes it."""
    return slot.sample()


def _recorded(file: Path) -> Policy:
    try:
        if file.suffix == ".npy":
            import numpy as np

            actions: Any = list(np.load(file, allow_pickle=False))
        else:
            actions = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise NoEnvironment(f"--policy {file} cannot be read: {error}") from None
    if not isinstance(actions, list) or not actions:
        raise NoEnvironment(f"--policy {file} has no actions in it")
    turn = itertools.cycle(actions)

    def next_action(slot: Slot) -> Any:
        return next(turn)

    return next_action
