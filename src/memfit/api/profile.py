"""`profile`: does an environment leak, who holds what grows, and what does one more cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from memfit.api.demo import system_envs
from memfit.api.env_errors import error_of
from memfit.api.env_holders import named
from memfit.api.env_verdict import Follower, Watching
from memfit.errors import MemfitError, UsageError
from memfit.model import (
    EnvCost,
    Profile,
    ProfileStep,
    Stepped,
    Stepping,
)
from memfit.model.job import Job, Look, Status, TargetKind
from memfit.model.profile import WAITING
from memfit.units import format_bytes

_TIMEOUT = 300.0
_MOST_FRAMES = 1_000_000_000
_WARM_FRAMES = 50  # of envs whose cost is measured


def profile(
    target: str | Callable[..., Any],
    *,
    frames: int = 1000,
    every: int | None = None,
    envs: int = 4,
    policy: str = "random",
    seed: int = 0,
    sites: bool = False,
    workers: bool = True,
    observe: bool = True,
    baseline: Path | str | None = None,
    options: Mapping[str, Any] | None = None,
    timeout: float = _TIMEOUT,
    network: bool = False,
    watching: Watching | None = None,
) -> Profile:
    """Step an environment in a child and say how its memory goes on, and what an env costs.

    `target` is a Gymnasium id, `package.module:make_env`, a system's name, or a class or function
    at the top of a module. It is stepped for `frames`, read every so many of them, and on where it
    grows. The cost of an env is measured with up to `envs` of them, each number in a child of its
    own. With `sites`, the lines that allocate are found in a second run.
    """
    from memfit.sources.env_target import env_target

    started = time.monotonic()
    asked_for = (("frames", frames), ("every", frames if every is None else every), ("envs", envs))
    for name, value in asked_for:
        if value < 1:
            raise UsageError(f"--{name} is {value}: give 1 or more")
        if value > _MOST_FRAMES:
            raise UsageError(f"--{name} is {value}: give {_MOST_FRAMES:,} at the most")
    earlier = None
    if baseline is not None:
        from memfit.api.profile_baseline import load

        earlier = load(Path(baseline))
    name, kind = env_target(target, system_envs())
    said = target if isinstance(target, str) else name
    asked = Stepping(target=name, kind=kind, policy=policy, seed=seed, options=dict(options or {}))
    run = _Run(said, timeout=timeout, network=network, watching=watching or (lambda step: None))
    found = run.verdict(asked, frames, every or max(1, frames // 10))
    notes, facts = list(found.notes), found.stepped
    costs: list[EnvCost] = []
    if observe:
        try:
            facts = replace(run.observed(asked, min(2, envs)), env=facts.env)
        except MemfitError as error:
            notes.append(f"facts of the observation could not be gathered: {_first(error, said)}")
    if envs > 1:
        try:
            costs += run.costs(asked, _counts(envs), workers=False)
        except MemfitError as error:
            notes.append(f"what one more env costs was not measured: {_first(error, said)}")
        if workers and costs:
            try:
                costs += run.costs(asked, sorted({1, min(envs, 4)}), workers=True)
            except MemfitError as error:
                notes.append(f"what a worker costs was not measured: {_first(error, said)}")
    result = replace(
        found,
        stepped=facts,
        costs=tuple(costs),
        bytes_per_env=_slope([c for c in costs if not c.workers]),
        bytes_per_worker=_slope([c for c in costs if c.workers]),
        sites=run.sites(asked, frames) if sites else (),
        notes=tuple(notes),
        seconds=time.monotonic() - started,
    )
    if earlier is not None:
        from memfit.analyses.profile_changes import changes

        result = replace(result, changed=tuple(changes(earlier, result)))
        if (other := earlier.get("target")) != said:
            note = f"the baseline is a profile of {other}, and not of {said}"
            result = replace(result, notes=(*result.notes, note))
    return result


def _first(error: MemfitError, target: str) -> str:
    """What went wrong, without what to do about it."""
    return str(error).removeprefix(f"{target}: ").removeprefix(f"{target} ").partition(": ")[0]


def _counts(envs: int) -> list[int]:
    """1, 2, 4, 8 ... and the largest."""
    found = [1]
    while found[-1] * 2 < envs:
        found.append(found[-1] * 2)
    return [*found, envs]


def _slope(costs: Sequence[EnvCost]) -> float | None:
    """What one more env adds, by a line through the measured ones."""
    from memfit.analyses.line import fit

    line = fit([(cost.n_envs, cost.bytes) for cost in costs])
    return None if line is None else line.bytes_per_unit


class _Run:
    """One target, and its children."""

    def __init__(self, target: str, *, timeout: float, network: bool, watching: Watching) -> None:
        from memfit.measure.children import sandbox

        self.target = target
        self.timeout = timeout
        self.network = network
        self.watching = watching
        self.memory = sandbox.room()

    def _job(self, asked: Stepping) -> Job:
        return Job(
            kind=TargetKind.ENV,
            target=asked.target,
            look=Look.STEP,
            network=self.network,
            stepping=asked,
        )

    @contextmanager
    def _stepping(self, asked: Stepping) -> Iterator[Any]:
        """A child that waits for a word; what goes wrong with it becomes an error."""
        from memfit.measure.profile.stepper import Stopped, stepping

        def alive(frame: int, held: int) -> None:
            self.watching(
                ProfileStep(stage=WAITING, frame=0, of=frame, frames_per_second=0.0, bytes=held)
            )

        try:
            with stepping(
                self._job(asked), timeout=self.timeout, memory=self.memory, alive=alive
            ) as stepper:
                yield stepper
        except Stopped as stopped:
            raise error_of(stopped.ended, self.target) from None

    def verdict(self, asked: Stepping, frames: int, every: int) -> Profile:
        """How the memory of one env goes on, and who holds what grows."""
        with self._stepping(asked) as stepper:
            follower = Follower(stepper, frames=frames, every=every, tell=self.watching)
            found = follower.follow()
            holders, judgement = named(found, follower)
            ended = stepper.end()
        stepped = self._stepped(ended)
        from memfit.analyses.grown_holders import kind_of
        from memfit.analyses.leak_verdict import waiting_garbage

        last = found.readings[-1]
        notes = []
        if found.collector_off:
            notes.append(
                "the environment has turned Python's collector off: objects that refer to each "
                "other are never freed"
            )
        if garbage := waiting_garbage(found.readings):
            notes.append(
                f"{format_bytes(garbage)} in use at the end of the first leg was garbage that "
                "waited for Python's collector: objects that refer to each other. It is no leak, "
                "and holds memory until the collector runs; break such cycles, or collect at reset"
            )
        if not stepper.walked_all:
            notes.append(
                "it has more objects than there was time to look at: who holds what grew is known "
                "in part"
            )
        if not last.episode:
            notes.append(
                f"no episode ended within {last.frame:,} frames: it was judged in the middle of "
                "one, by the frame"
            )
        return Profile(
            target=self.target,
            judgement=judgement,
            kind=kind_of(judgement, holders),
            readings=tuple(found.readings),
            holders=tuple(holders),
            stepped=stepped,
            frames=last.frame,
            episodes=last.episode,
            frames_per_second=last.frame / last.seconds if last.seconds else 0.0,
            peak_bytes=ended.peak_bytes,
            notes=(*notes, *(_held_notes(ended))),
        )

    def observed(self, asked: Stepping, envs: int) -> Stepped:
        """What a child that gathers facts answers, with one env where there cannot be several."""
        from memfit.measure.children import sandbox

        job = self._job(replace(asked, n_envs=envs, observe=True))
        try:
            return self._stepped(sandbox.run(job, timeout=self.timeout, memory=self.memory))
        except UsageError:
            if envs == 1:
                raise
            return self.observed(asked, 1)

    def costs(self, asked: Stepping, counts: Sequence[int], *, workers: bool) -> list[EnvCost]:
        """The memory of children with so many envs, stepped for a while."""
        found = []
        for number, count in enumerate(counts):
            where = "in worker processes" if workers else "in one process"
            self.watching(
                ProfileStep(
                    stage=f"{count} envs {where}" if count > 1 else f"1 env {where}",
                    frame=number,
                    of=len(counts),
                    frames_per_second=0.0,
                    bytes=0,
                )
            )
            with self._stepping(replace(asked, n_envs=count, workers=workers)) as stepper:
                stepper.step(_WARM_FRAMES, _WARM_FRAMES)
                memory = stepper.child.tree.memory()
                main = memory.main
                found.append(
                    EnvCost(
                        n_envs=count,
                        workers=workers,
                        bytes=memory.alone,
                        private=main.private if main is not None else 0,
                        processes=memory.processes,
                    )
                )
        return found

    def sites(self, asked: Stepping, frames: int) -> Any:
        """The lines that allocate what stays, in a run that records allocations."""
        from memfit.model.stepping_words import Command

        with self._stepping(replace(asked, trace=True)) as stepper:
            said = stepper.step(max(1, frames // 4), frames)
            stepper.do(Command.MARK)
            stepper.step(said.frames + frames, said.frames + 2 * frames)
            return self._stepped(stepper.end()).sites

    def _stepped(self, ended: Any) -> Stepped:
        if ended.answer.status is not Status.STEPPED or ended.answer.stepped is None:
            raise error_of(ended, self.target)
        found: Stepped = ended.answer.stepped
        return found


def _held_notes(ended: Any) -> tuple[str, ...]:
    return tuple(note.replace("the script", "the environment") for note in ended.notes)
