"""What a goal of `optimize` asks for, and the cheapest fixes that reach it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from memfit.analyses.best_set import best_set, expected, sets_for
from memfit.analyses.capacity import MACHINE, Hardware, capacity
from memfit.api.optimize_runs import Runs
from memfit.api.plan import say
from memfit.api.tried_fixes import RunTarget, joined_fix, judged, predicted_fix
from memfit.errors import MemfitError, UsageError
from memfit.model import Changes, Plan
from memfit.model.optimized import Goal, TriedFix
from memfit.units import parse_bytes

Progress = Callable[[str], None]
_TRIES = 3  # sets that are run to reach a goal, beside the largest one
_LOOKED_AT = 4  # sets that are planned with other settings
_NEVER = 2**62


def parse_goal(goal: str | int | None) -> Goal | None:
    """`8GiB`, or `n_envs=64`, or several settings apart by commas."""
    if goal is None:
        return None
    text = str(goal)
    if "=" not in text:
        amount = goal if isinstance(goal, int) else parse_bytes(text)
        if amount < 1:
            raise UsageError(f"--goal {text} leaves no room for anything: give a size such as 8GiB")
        return Goal(text=text, bytes=amount)
    knobs = {}
    for part in text.split(","):
        name, _, value = (word.strip() for word in part.partition("="))
        digits = value.replace("_", "")
        if not name.isidentifier() or not digits.isdecimal() or not int(digits):
            raise UsageError(
                f"--goal {text}: write a size (8GiB), or a setting and a whole number above zero, "
                "such as n_envs=64"
            )
        knobs[name] = int(digits)
    return Goal(text=text, bytes=0, knobs=knobs)


@dataclass(frozen=True, kw_only=True)
class Reaching:
    """What is known when a goal is looked for: what was tried, and how to try more."""

    goal: Goal
    tried: Sequence[TriedFix]
    together: TriedFix | None
    runs: Runs
    what: RunTarget
    planned: Plan
    progress: Progress | None

    def reach(self) -> tuple[Goal, TriedFix | None]:
        """The cheapest set with which the goal is reached, or the nearest and what is missing."""
        goal = self.goal
        own = self.runs.peak_bytes
        if goal.knobs:
            say(self.progress, f"with {goal.text}, as it is")
            own = self.runs.run(Changes(), goal.knobs).peak_bytes
        if own is not None and own <= goal.bytes:
            return replace(goal, reached=True, peak_bytes=own), None
        nearest: TriedFix | None = None
        for some in self._promising():
            found = self._run(some, own)
            if found.peak_bytes is None:
                continue
            if found.peak_bytes <= goal.bytes:
                return replace(goal, reached=True, peak_bytes=found.peak_bytes), found
            if nearest is None or found.peak_bytes < (nearest.peak_bytes or 0):
                nearest = found
        least = min((peak for peak in (own, nearest and nearest.peak_bytes) if peak), default=None)
        missing = 0 if least is None else least - goal.bytes
        return (
            replace(
                goal,
                reached=False,
                peak_bytes=least,
                missing_bytes=missing,
                largest=self._largest(nearest),
            ),
            nearest,
        )

    def _promising(self) -> Iterator[Sequence[TriedFix]]:
        """Sets that are expected to be enough, the cheapest first, and then all there is."""
        full = best_set(self.tried, self.runs.peak_bytes or self.planned.peak_bytes)
        looked: list[Sequence[TriedFix]] = []
        for some in islice(sets_for(self.tried), _LOOKED_AT if self.goal.knobs else None):
            if len(looked) == _TRIES:
                break
            if set(_codes(some)) != set(_codes(full)) and self._expected(some) <= self.goal.bytes:
                looked.append(some)
        yield from looked
        if full:
            yield full

    def _expected(self, some: Sequence[TriedFix]) -> int:
        if not self.goal.knobs:
            return expected(self.runs.peak_bytes or self.planned.peak_bytes, some)
        peak = self.what.peak(joined_fix(some).changes, self.goal.knobs)
        return _NEVER if peak is None else peak

    def _run(self, some: Sequence[TriedFix], own: int | None) -> TriedFix:
        joined, together = joined_fix(some), self.together
        if not self.goal.knobs and together is not None and together.codes == joined.codes:
            return together
        say(self.progress, f"for the goal: {joined.code}")
        before = len(self.runs.unchanged)
        run = self.runs.run(joined.changes, self.goal.knobs)
        if not self.goal.knobs:
            predicted = predicted_fix(joined, self.what, self.planned)
            return judged(predicted, run, self.runs, before)
        # Beside the unchanged run with these settings.
        measured = None if own is None or run.peak_bytes is None else own - run.peak_bytes
        return replace(
            joined, peak_bytes=run.peak_bytes, measured_bytes=measured, why_not=run.failed
        )

    def _largest(self, nearest: TriedFix | None) -> int | None:
        """The largest value of a goal's only setting that fits, by a plan."""
        if len(self.goal.knobs) != 1:
            return None
        (name,) = self.goal.knobs
        changes = nearest.changes if nearest is not None else Changes()
        try:
            ledger = self.what.planned(changes).ledger
        except MemfitError:
            return None
        within = Hardware("goal", self.goal.bytes, MACHINE)
        return capacity(ledger, within, [name]).largest.get(name)


def _codes(some: Sequence[TriedFix]) -> list[str]:
    return [one.change for one in some]
