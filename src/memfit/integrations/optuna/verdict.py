"""What is noted on a trial: how it stood with memory, and how far above the limit that was."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import optuna
from optuna.trial import FrozenTrial

from memfit.errors import MemfitError


class ObjectiveFailed(MemfitError):
    """An objective raised, or ended without a value; `output` is its traceback."""

    exit_code = 1


class Verdict(StrEnum):
    """What became of a trial, as far as memory is concerned."""

    FITS = "fits"
    IN_DOUBT = "in doubt: ran alone"
    NOT_PLANNED = "not planned: ran alone"
    TOO_LARGE = "too large"
    OVER_SHARE = "over its share"
    OUT_OF_MEMORY = "out of memory"


def constraints_func(trial: FrozenTrial) -> tuple[float]:
    """How far above the limit a trial is, as a share of it: a constraint for Optuna's samplers.

    Optuna 5 is told the same of each trial without it.
    """
    return (float(trial.user_attrs.get("over_limit", 0.0)),)


def note(trial: optuna.Trial, **facts: Any) -> None:
    """Store facts as the trial's user attributes."""
    for name, value in facts.items():
        trial.set_user_attr(name, value)
