"""`within`: a user's objective, limit and space, checked and put together."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from memfit.errors import UsageError
from memfit.inside.objective import IN_TRIAL
from memfit.integrations.optuna.bounded_study import Say, Within
from memfit.integrations.optuna.room import Room
from memfit.integrations.planned_space import Parameter, PlannedSpace
from memfit.integrations.surveys import (
    SPEC,
    check_words,
    objective_name,
    objective_survey,
    target_survey,
)
from memfit.measure.kernel import limits
from memfit.units import parse_bytes

_KEPT_FREE = 0.1  # of what the machine has free, where no limit is given
_IN_CHILD = (
    "a study was begun in the process of one of its trials: put it below "
    'if __name__ == "__main__":, since a trial loads the program that its objective is in'
)


def within(
    objective: str | Callable[..., Any] | Sequence[str],
    limit: str | int | None = None,
    jobs: int | Literal["fit"] = "fit",
    *,
    space: Mapping[str, BaseDistribution] | None = None,
    value: str = "",
    plan: str = "",
    knobs: Mapping[str, str] | None = None,
    ignore: Sequence[str] = (),
    each: Mapping[str, int] | None = None,
    fixed: Mapping[str, int] | None = None,
    folder: str | Path = "memfit-trials",
    network: bool = False,
    timeout: float = 300.0,
    say: Say = lambda text: None,
) -> Within:
    """An objective whose trials run side by side within a limit, each in a process of its own.

    The objective is a function that takes a trial, as "module:function" or itself, or a command as
    a list of words with `{name}` where a parameter goes, and `{share}` where it wants the bytes
    that it may take; a command needs the `space` of its parameters, and as `value` a pattern whose
    last match in what it prints is the trial's value.
    `jobs` is how many trials run at once at most, "fit" as many as fit. `plan` is a target of
    `memfit plan` (a spec) that is planned instead of the objective, and needs the `space` too;
    `knobs` are its names of parameters; those of `ignore` change no memory, and one more of those
    of `each` takes so many bytes that a plan does not know of. `fixed` are knobs of a spec that all
    trials have. Recordings go to
    `folder`; planning has no network, unless `network`, and `timeout` seconds each time.
    """
    if IN_TRIAL in os.environ:
        raise UsageError(_IN_CHILD)
    if jobs != "fit" and not _is_count(jobs):
        raise UsageError(f'jobs={jobs!r}: give a whole number above 0, or "fit"')
    amount = _limit_of(limit)
    parameters = {name: _parameter(name, given) for name, given in (space or {}).items()}
    options = {"quick": True, "network": network, "timeout": timeout}
    told = {"knobs": knobs, "ignore": ignore, "each": each, "say": say}
    if isinstance(objective, str) or callable(objective):
        if value:
            raise UsageError("value= is for a command: an objective returns its value")
        name, words = objective_name(objective), tuple[str, ...]()
    else:
        name, words = "", tuple(map(str, objective))
        if not words or not parameters or not value:
            raise UsageError(
                "a command needs the space of its parameters and how its value is found: "
                'space={"batch_size": IntDistribution(32, 512)}, value=r"reward=(\\S+)"'
            )
        check_words(words, list(parameters))
    if plan and not parameters:
        raise UsageError(
            f"plan={plan!r} needs the space of the study: space={{name: distribution}}"
        )
    if plan or words:
        target, args = (plan, ()) if plan else ("", words)
        survey = target_survey(
            target,
            args,
            parameters,
            knobs=knobs or {},
            ignore=(*ignore, *(each or {})),
            fixed=fixed or {},
            options=options,
        )
    else:
        survey = objective_survey(name, options)
    planned = PlannedSpace(survey, named=plan.endswith(SPEC), **told)  # type: ignore[arg-type]
    most = None if jobs == "fit" else int(jobs)
    return Within(
        name,
        words,
        _pattern(value),
        planned=planned,
        space=parameters,
        room=Room(amount, most),
        folder=Path(folder),
        say=say,
    )


def _limit_of(limit: str | int | None) -> int:
    if limit is None:
        free = limits.available()
        most = limits.memory_limit().bytes
        return int((min(most, free) if free else most) * (1 - _KEPT_FREE))
    amount = parse_bytes(limit) if isinstance(limit, str) else limit
    if not _is_count(amount):
        raise UsageError(f"limit={limit!r}: give an amount of memory such as 16GiB")
    return amount


def _is_count(given: object) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and given > 0


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(f"value={text!r} is no pattern: {error}") from None


def _parameter(name: str, given: BaseDistribution) -> Parameter:
    match given:
        case IntDistribution(low=low, high=high, step=step, log=log):
            return Parameter(name=name, kind="int", low=low, high=high, step=step, log=log)
        case FloatDistribution(low=low, high=high, step=step, log=log):
            return Parameter(name=name, kind="float", low=low, high=high, step=step, log=log)
        case CategoricalDistribution(choices=choices):
            return Parameter(name=name, kind="categorical", choices=tuple(choices))
    raise UsageError(
        f"{name} in space= is {given!r}: give an IntDistribution, FloatDistribution or "
        "CategoricalDistribution of optuna.distributions"
    )
