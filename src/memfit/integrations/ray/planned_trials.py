"""Trials of Tune that demand what their plan says; one that fits no node is refused."""

from __future__ import annotations

import functools
import inspect
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memfit.errors import MemfitError, UsageError
from memfit.integrations.planned_space import Asked, PlannedSpace
from memfit.integrations.ray.cluster import imported, largest_node
from memfit.integrations.ray.tune_space import flat, parameters_of
from memfit.integrations.ray.worker_cost import worker_bytes
from memfit.integrations.surveys import SPEC, objective_name, objective_survey, target_survey
from memfit.model.memory_request import PAGES_OF_A_TABLE, whole_mib
from memfit.units import MIB, format_bytes

Train = Callable[[dict[str, Any]], Any]
Say = Callable[[str], None]


REFUSED_BYTES = 1  # what a trial demands that only tells why it was refused: Tune wants something
_SPACES: dict[str, tuple[PlannedSpace, Say]] = {}
_REFUSED: dict[str, Any] = {}  # an actor for each study, once there is a first


class DoesNotFit(MemfitError):
    """A trial that was refused, since no node of the cluster has its memory."""

    exit_code = 3


def planned(
    train: Train,
    space: Mapping[str, Any],
    *,
    plan: str = "",
    knobs: Mapping[str, str] | None = None,
    ignore: Sequence[str] = (),
    each: Mapping[str, int] | None = None,
    fixed: Mapping[str, int] | None = None,
    cpus: float = 1,
    network: bool = False,
    timeout: float = 300.0,
    say: Say = lambda text: None,
) -> Train:
    """A trainable for `tune.Tuner`, whose trials demand their upper bound of Ray.

    `train` is a function that takes a configuration, `space` the Tuner's `param_space`. The
    function is planned in a child, up to where it learns, as `memfit.integrations.optuna` plans
    objectives; `plan` is a spec that is planned in its place. A trial whose bounds leave open
    whether it fits gets all of the largest node; one that cannot fit raises `DoesNotFit` with the
    reason, before `train` is called; one that cannot be planned gets a whole node.
    """
    if not inspect.isfunction(train) or inspect.isgeneratorfunction(train):
        raise UsageError(
            f"{train!r} is no function that takes a configuration and reports: for classes, give "
            "Tune what memfit.integrations.ray.resources() says"
        )
    _check_connected()
    parameters, constant = parameters_of(space)
    named = {*(knobs or {}), *ignore, *(each or {})}
    if unknown := named - parameters.keys():
        raise UsageError(
            f"the space has no {', '.join(sorted(unknown))}: it has "
            f"{', '.join(sorted(parameters)) or 'nothing that varies'}"
        )
    options = {"quick": True, "network": network, "timeout": timeout}
    if plan:
        survey = target_survey(
            plan,
            (),
            parameters,
            knobs=knobs or {},
            ignore=(*ignore, *(each or {})),
            fixed=fixed or {},
            options=options,
        )
    else:
        told = {name: vars(parameter) for name, parameter in parameters.items()}
        survey = objective_survey(
            objective_name(train), options, space={"varied": told, "constant": constant}
        )
    found = PlannedSpace(
        survey, knobs=knobs, ignore=ignore, each=each, named=plan.endswith(SPEC), say=say
    )
    worker = worker_bytes()
    found.prepare(largest_node() - worker)
    admission = Admission(found, worker, cpus, say)

    @functools.wraps(train)
    def trial(config: dict[str, Any]) -> Any:
        reason = admission.refusal(config)
        if reason:
            raise DoesNotFit(reason)
        return train(config)

    from ray import tune

    made: Train = tune.with_resources(trial, admission)
    return made


def _check_connected() -> None:
    ray = imported()
    if not ray.is_initialized():
        raise UsageError("connect to the cluster first: ray.init(address='auto')")


class Admission:
    """What a trial demands, asked where the study runs; and why one was refused, asked by it.

    Tune keeps a copy of it with the trainable: what only the study's process has is in `_SPACES`.
    """

    def __init__(self, space: PlannedSpace, worker: int, cpus: float, say: Say) -> None:
        self._name = f"memfit-refused-{uuid.uuid4().hex}"
        self._worker, self._cpus = worker, cpus
        _SPACES[self._name] = (space, say)

    def __call__(self, config: Mapping[str, Any]) -> Any:
        """The resources of a trial: those of a refused one hold it for its message."""
        from ray import tune

        demand, reason = self.demand(config)
        if reason:
            self._refuse(config, reason)
            return tune.PlacementGroupFactory([{"memory": REFUSED_BYTES}])
        return tune.PlacementGroupFactory([{"CPU": self._cpus, "memory": demand}])

    def demand(self, config: Mapping[str, Any]) -> tuple[int, str]:
        """The memory of a trial, or why no node has it."""
        if self._name not in _SPACES:
            raise UsageError(
                "this study was planned by another process: restore it with a trainable that is "
                "planned anew, as in tune.Tuner.restore(path, trainable=planned(train, space))"
            )
        (space, say), room = _SPACES[self._name], largest_node()
        try:
            asked = space.ask(dict(flat(config)))
        except MemfitError as error:  # no reason to end the study
            say(f"a trial gets a whole node, since it could not be planned: {error}")
            return room, ""
        if asked.lower_bytes + self._worker > room:
            return 0, _reason(asked, self._worker, room)
        upper = asked.upper_bytes + asked.upper_bytes // PAGES_OF_A_TABLE + self._worker
        return min(whole_mib(upper) * MIB, room), ""

    def refusal(self, config: Mapping[str, Any]) -> str:
        """Why a trial was refused; empty where it was not."""
        import ray

        try:
            actor = ray.get_actor(self._name)
        except ValueError:
            return ""
        found: str = ray.get(actor.reason.remote(_key(config)))
        return found

    def _refuse(self, config: Mapping[str, Any], reason: str) -> None:
        import ray

        if self._name not in _REFUSED:
            made = ray.remote(num_cpus=0)(_Refused)
            _REFUSED[self._name] = made.options(name=self._name).remote()
        ray.get(_REFUSED[self._name].note.remote(_key(config), reason))


class _Refused:
    """Configurations that were refused."""

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}

    def note(self, key: str, reason: str) -> None:
        self._reasons[key] = reason

    def reason(self, key: str) -> str:
        return self._reasons.get(key, "")


def _key(config: Mapping[str, Any]) -> str:
    return repr(sorted((name, repr(value)) for name, value in flat(config)))


def _reason(asked: Asked, worker: int, room: int) -> str:
    row = asked.row
    return (
        f"planned {format_bytes(asked.peak_bytes + worker)}, and the largest node has "
        f"{format_bytes(room)}; {row.name} alone takes {format_bytes(asked.ledger.bytes_of(row))}: "
        "make that smaller, or add a larger node"
    )
