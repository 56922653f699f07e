"""A space of settings that was planned: what a run with any of them takes, in microseconds.

One survey gives formulas for all settings that it finds in the run under their own names; a second
one at other values must agree with them. Other whole numbers and choices may change what the run
is, and what it asks for next: each combination of these is surveyed once. Numbers with a fraction
(learning rates) change no memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from memfit.analyses.upper_bound import upper_bytes
from memfit.errors import UsageError
from memfit.model import Component, Ledger, Plan
from memfit.units import MIB, format_bytes

_AGREES, _AGREES_BYTES = 0.03, 8 * MIB  # by so much two surveys of the same run may differ
_START = "start"
_MOST_ROWS = 8

Values = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One setting of a space: a range of whole numbers or of any, or some choices."""

    name: str
    kind: str
    low: float = 0
    high: float = 0
    step: float | None = None
    log: bool = False
    choices: tuple[Any, ...] = ()

    @property
    def numbers(self) -> bool:
        """Whether its values are whole numbers."""
        return self.kind == "int" or (
            self.kind == "categorical" and all(type(choice) is int for choice in self.choices)
        )

    @property
    def least(self) -> Any:
        """The smallest of its values."""
        if self.kind == "categorical":
            return min(self.choices) if self.numbers else self.choices[0]
        return self.low


@dataclass(frozen=True, kw_only=True)
class Surveyed:
    """A plan, the values that it was made with, and the settings that the run has asked for."""

    plan: Plan
    values: Values
    parameters: Mapping[str, Parameter]  # in the order in which they were asked for

    @property
    def in_rows(self) -> frozenset[str]:
        """The knobs that its formulas are of."""
        return frozenset[str]().union(*(c.size.knobs for c in self.plan.ledger.components))


Survey = Callable[[Values], Surveyed]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What one configuration takes by plan."""

    ledger: Ledger
    peak_bytes: int
    upper_bytes: int

    @property
    def lower_bytes(self) -> int:
        """The least that its peak may come to: as far below the plan as the bound is above it."""
        return max(0, 2 * self.peak_bytes - self.upper_bytes)

    @property
    def row(self) -> Component:
        """The largest row at the peak of those that a setting makes larger; else of all."""
        moment = self.ledger.peak.moment
        alive = [c for c in self.ledger.components if c.alive_in(moment)]
        return max(alive, key=lambda c: (bool(c.size.knobs), self.ledger.bytes_of(c)))

    @property
    def facts(self) -> dict[str, Any]:
        """The plan as plain values, with its largest rows."""
        moment = self.ledger.peak.moment
        alive = [c for c in self.ledger.components if c.alive_in(moment)]
        alive.sort(key=lambda c: -self.ledger.bytes_of(c))
        return {
            "peak_bytes": self.peak_bytes,
            "upper_bytes": self.upper_bytes,
            "moment": moment,
            "knobs": dict(self.ledger.knobs),
            "rows": {c.name: self.ledger.bytes_of(c) for c in alive[:_MOST_ROWS]},
        }


class PlannedSpace:
    """Plans what it has not seen, and answers at once where formulas or an earlier survey do.

    `knobs` gives settings the names that a plan has for them; those of `ignore` change no memory,
    and one more of those of `each` takes so many bytes that no plan knows of.
    With `named`, a setting stands for the knob of its name even where no second survey says so.
    """

    def __init__(
        self,
        survey: Survey,
        *,
        knobs: Mapping[str, str] | None = None,
        ignore: Collection[str] = (),
        each: Mapping[str, int] | None = None,
        named: bool = False,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.planner_bytes = 0  # the most that a survey has taken
        self.surveys: list[Surveyed] = []
        self._survey, self._say = survey, say
        self._knobs, self._each, self._named = dict(knobs or {}), dict(each or {}), named
        self._ignore = frozenset(ignore) | self._each.keys()
        self._by_formula: dict[str, bool] = {}  # what has been judged
        self._lock = threading.RLock()

    def prepare(self, limit: int) -> None:
        """Survey it for the first time; refuse what could never run within the limit."""
        with self._lock:
            if self.surveys:
                return
            self._say("planning the space of the study")
            first = self._surveyed({})
            base = first.plan.ledger.moment_bytes.get(_START, 0)
            if base > limit:
                raise UsageError(
                    f"of the limit, {format_bytes(max(0, limit))} is there for a trial, and its "
                    f"imports alone take {format_bytes(base)}: give more"
                )
            self._keep(first)

    # -- asking ----------------------------------------------------------------------------------

    def next_parameter(self, values: Values) -> Parameter | None:
        """What a run with these settings asks for next; None where it has all.

        KeyError where that is not known yet.
        """
        for found in reversed(self.surveys):  # a later one may have asked for more
            for name, parameter in found.parameters.items():
                if name not in values:
                    return parameter
                if self._matters(name, parameter) and values[name] != found.values[name]:
                    break
            else:
                return None
        raise KeyError

    def learn(self, values: Values, *, anew: bool = False) -> None:
        """Survey this configuration, and all that differ from it by formulas alone."""
        with self._lock:
            if anew or self._found(values) is None:
                self._keep(self._surveyed(values))

    def knows(self, values: Values) -> bool:
        """Whether this configuration needs no further survey."""
        return self._found(values) is not None

    def ask(self, values: Values) -> Asked:
        """What a run with these settings takes; one that is not known is surveyed first."""
        found = self._found(values)
        if found is None:
            self.learn(values)
            found = self._found(values)
        if found is None:
            lacking = sorted(set(self.surveys[-1].parameters) - set(values))
            raise UsageError(f"this run asks for {', '.join(lacking)} too: give a value of each")
        given = {
            self._knobs.get(name, name): int(values[name])
            for name in found.parameters
            if self._by_formula.get(name)
        }
        more = sum(int(values[name] * size) for name, size in self._each.items() if name in values)
        return _at(found.plan, given, more)

    def _found(self, values: Values) -> Surveyed | None:
        """The survey that says what these settings make of the run; the closest, if several do."""
        closest, most = None, -1
        for found in self.surveys:
            agreeing = 0
            for name, parameter in found.parameters.items():
                if name not in values:
                    break
                if self._matters(name, parameter):
                    if values[name] != found.values[name]:
                        break
                    agreeing += 1
            else:
                if agreeing > most:
                    closest, most = found, agreeing
        return closest

    def _matters(self, name: str, parameter: Parameter) -> bool:
        """Whether a setting may change what the run is, and no formula has it."""
        return (
            parameter.kind != "float"
            and name not in self._ignore
            and not self._by_formula.get(name, False)
        )

    # -- surveying -------------------------------------------------------------------------------

    def _surveyed(self, values: Values) -> Surveyed:
        found = self._survey(values)
        self.planner_bytes = max(self.planner_bytes, found.plan.planner_peak_bytes)
        return found

    def _keep(self, found: Surveyed) -> None:
        """Take a survey in, once it is known which of its settings its formulas have."""
        unknown = set(self._knobs.values()) - found.plan.ledger.knobs.keys()
        if unknown:
            raise UsageError(
                f"the plan has no setting {', '.join(sorted(unknown))}: it has "
                f"{', '.join(sorted(found.plan.ledger.knobs))}. Name one of these in knobs="
            )
        names = [name for name in self._found_by_name(found) if name not in self._by_formula]
        if names:
            confirmed = self._named or self._confirmed(found, names)
            if not confirmed:
                self._say(
                    f"{', '.join(names)} do more than formulas say: each value is planned by itself"
                )
            self._by_formula |= dict.fromkeys(names, confirmed)
        self.surveys.append(found)

    def _found_by_name(self, found: Surveyed) -> list[str]:
        """The settings that a plan's formulas have, with the values that they were given.

        A loop's formulas hold some of its rows alone, so that they do not say what a setting does.
        """
        ledger, readings = found.plan.ledger, found.plan.readings
        if readings is None or (readings.trial and not self._named):
            return []
        return [
            name
            for name, parameter in found.parameters.items()
            if parameter.numbers
            and name not in self._ignore
            and (knob := self._knobs.get(name, name)) in ledger.knobs
            and ledger.knobs[knob] == found.values[name]
            and (not self._named or knob in found.in_rows)
        ]

    def _confirmed(self, first: Surveyed, names: Collection[str]) -> bool:
        """Whether a survey at the smallest values finds what the formulas say of these."""
        least = {name: first.parameters[name].least for name in names}
        then = self._surveyed({**first.values, **least})
        if then.plan.readings is None or set(then.parameters) != set(first.parameters):
            return False
        asked = _at(first.plan, {self._knobs.get(n, n): int(then.values[n]) for n in names})
        before, after = asked.ledger.knobs, then.plan.ledger.knobs
        same = all(after.get(name) == before[name] for name in first.in_rows)
        apart = abs(asked.peak_bytes - then.plan.peak_bytes)
        return same and apart <= _AGREES_BYTES + _AGREES * then.plan.peak_bytes


def _at(plan: Plan, knobs: Mapping[str, int], more: int = 0) -> Asked:
    # Where a choice has made another run of it, that may lack some of them.
    ledger = plan.ledger.at(**{name: knobs[name] for name in knobs if name in plan.ledger.knobs})
    assert plan.readings is not None
    return Asked(
        ledger=ledger,
        peak_bytes=ledger.peak.bytes + more,
        upper_bytes=upper_bytes(ledger, plan.readings) + more,
    )
