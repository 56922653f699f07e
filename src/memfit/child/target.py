"""Runs a job's target up to where it would learn, surveys or rehearses it there, and ends."""

from __future__ import annotations

import base64
import importlib
import os
import pickle
import runpy
import sys
import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from memfit.child.after_learn import AfterLearn
from memfit.child.counted_training import CountedTraining
from memfit.child.disposable import Disposable
from memfit.child.failures import answer_to
from memfit.child.held_arrays import held_arrays
from memfit.child.import_hooks import ImportHooks, reserve_without_limit
from memfit.child.import_steps import ImportSteps
from memfit.child.launched_ranks import hold_still, start_ranks
from memfit.child.loop_trial import LoopTrial
from memfit.child.no_outside import close_off, no_windows
from memfit.child.notebook import run_notebook
from memfit.child.seeding import seed_all
from memfit.errors import SpecError, Unsupported
from memfit.formulas.array_bytes import scaled
from memfit.libraries import all_libraries, library_of
from memfit.libraries.loop.changed_settings import change_own_files, with_argument_values
from memfit.libraries.loop.main_code import main_spec, run_main
from memfit.libraries.loop.own_files import OwnFiles
from memfit.measure.children.way import Way
from memfit.measure.kernel.proc import PeakMeter
from memfit.measure.survey.beside_training import with_beside
from memfit.measure.survey.built_alike import built_alike
from memfit.measure.survey.observer import Observer
from memfit.measure.survey.rehearsal import Rehearsal
from memfit.measure.survey.surveyor import Surveyor
from memfit.model import AfterReading, Rehearsed
from memfit.model.job import PROGRAMS, Answer, Job, Look, Status, TargetKind
from memfit.model.progress_file import PROGRESS
from memfit.model.training import Driven, Looping, Observed, SkipTraining, Training
from memfit.sources.module_file import module_file

_HEAVY_ENV = 2**20  # of memory, from which on it is worth to see what envs have alike


class Child(Disposable):
    """One job: which target, how to look at it, and where the answer goes."""

    def __init__(self, job: Job, result: Path, scratch: Path, way: Way) -> None:
        super().__init__(job, result, scratch, way)
        self.meter = PeakMeter()
        self.skipped: list[weakref.ref[Any]] = []
        self.observer: Observer | None = None
        self.script = os.path.abspath(job.target)  # noqa: PTH100 - as Python names it
        self.imports = ImportSteps()
        self.after = AfterLearn(self.script, job.seconds, self._ran_on)
        self.loop = LoopTrial(job, result.with_name(PROGRESS), self._tried)
        self.counted = CountedTraining(job, self.answer)

    def run(self) -> None:
        """Confine this process, put on the hooks, and run the target."""
        if self.job.look is Look.AFTER:
            no_windows()
        own = {**self.confine(), "numpy": reserve_without_limit}
        seeds = seed_all() if self.job.look is Look.TRAIN else {}
        theirs = [h for library in all_libraries() for h in library.hooks(self.stop, self.job)]
        ImportHooks([own, seeds, *theirs]).install()
        self.imports.install()
        if self.job.kind in PROGRAMS:
            self._set_arguments()
        if self.job.ranks:
            # What follows a training, or a second one, is looked at in one process.
            tried = self.job.look is Look.SURVEY and not self.job.skip
            self.loop.beside = start_ranks(self.job.ranks if tried else 1)
        match self.job.kind:
            case TargetKind.SCRIPT:
                self._run_script()
            case TargetKind.MODULE:
                self._run_module()
            case TargetKind.NOTEBOOK:
                run_notebook(Path(self.job.target), self._changed)
            case TargetKind.FACTORY:
                self._run_factory()
            case TargetKind.SPEC:
                self._run_spec()
            case TargetKind.OBJECT:
                self._begin(pickle.loads(base64.b64decode(self.job.pickled)))

    def _set_arguments(self) -> None:
        sys.argv = [self.job.target, *self.job.args]
        if self.job.rewrite:
            sys.argv[1:] = with_argument_values(self.job.args, self.job.knobs)
        if self.job.look in (Look.SURVEY, Look.TRAIN):
            change_own_files(OwnFiles(self.job), self._changed)

    @property
    def _changed(self) -> Mapping[str, int]:
        return self.job.knobs if self.job.rewrite else {}

    def _run_script(self) -> None:
        path = self.job.target
        sys.path.insert(0, str(Path(path).resolve().parent))
        run_main(os.path.abspath(path), self._changed)  # noqa: PTH100 - as Python does

    def _run_module(self) -> None:
        sys.path.insert(0, str(Path.cwd()))
        found = module_file(self.job.target, sys.path)
        self.script = self.after.script = self.loop.script = str(found or self.job.target)
        if found is None or found.suffix != ".py":
            runpy.run_module(self.job.target, run_name="__main__", alter_sys=True)
            return
        sys.argv[0] = str(found)
        run_main(str(found), self._changed, main_spec(self.job.target))

    def _run_factory(self) -> None:
        module_name, _, name = self.job.target.partition(":")
        sys.path.insert(0, str(Path.cwd()))
        self._begin(getattr(importlib.import_module(module_name), name)())

    def _begin(self, made: Any) -> None:
        owner = next((library for library in all_libraries() if library.owns(made)), None)
        if owner is not None:
            owner.begin(made, self.stop)

    def _run_spec(self) -> None:
        update = {**self.job.spec.get("update", {}), **self.job.changes.update}
        facts = {**self.job.spec, **({"update": update} if self.job.changes.update else {})}
        sys.path.insert(0, str(Path.cwd()))
        try:
            for name in facts["imports"]:
                _import(name)
            library_of(facts["library"]).build(facts, self.scratch, self.stop)
        except SpecError as error:
            self.answer(Answer(status=Status.BAD_SPEC, reason=str(error)))

    # -- where it would learn --------------------------------------------------------------------

    def stop(self, training: Training) -> Any:
        """Look at a training that is about to begin; return only where it is to go on."""
        if os.getpid() != self.own and self.job.ranks > 1 and not isinstance(training, Looping):
            hold_still()  # the first process is looked at
        if isinstance(training, Looping):
            if self.job.look is Look.TRAIN:
                self.counted.listen(training)
            else:
                self.loop.begin(training)
            return
        self.loop.dismiss()
        self._check_settings(training)
        if self.job.look is Look.TRAIN:
            self.counted.begins(training)
            return
        if self.job.look is Look.OBSERVE and isinstance(training, Observed):
            self.observer = Observer(training, self.job.updates, self._end_observing)
            return
        if self.job.look is Look.AFTER:
            if not self.after.begun:
                # In namespaces, every socket that has a path is of this plan.
                close_off("/" if self.way is Way.NAMESPACES else str(self.scratch))
            self.after.learned(training)
            raise SkipTraining
        if len(self.skipped) < self.job.skip:
            self.skipped.append(weakref.ref(training.identity()))
            raise SkipTraining
        stopped = self.meter.now()
        imports = {name: dict(parts) for name, parts in self.imports.bytes.items()}
        files, mapped = dict(self.imports.files), self.imports.mapped()
        earlier = [skipped() for skipped in self.skipped]
        held: dict[str, int] = {}
        with suppress(Exception):  # names of parts are no reason for a plan to fail
            held = held_arrays(sys._getframe(), self.script, training.identity())
        try:
            found = _look_at(training, self.job, stopped, held, self.scratch)
        except BaseException as error:  # noqa: BLE001 - whatever its own code raises is the answer
            self.answer(self._failed(error, training))
        self.answer(
            Answer(
                **found,
                imports=imports,
                files=files,
                mapped=mapped,
                again=training.identity() in earlier,
                earlier_alive=any(one is not None for one in earlier),
            )
        )

    def _check_settings(self, training: Training) -> None:
        """A setting that the run does not have after all is the answer."""
        known = training.settings()
        if any(known.get(name) != value for name, value in self.job.knobs.items()):
            self.answer(Answer(status=Status.NO_SETTING, settings=tuple(known)))
        if lacking := training.lacks(self.job.changes):
            self.answer(Answer(status=Status.NO_SETTING, settings=tuple(lacking)))

    def _failed(self, error: BaseException, training: Training) -> Answer:
        if isinstance(error, SpecError):
            return Answer(status=Status.BAD_SPEC, reason=str(error))
        built_here = self.job.kind in (TargetKind.OBJECT, TargetKind.FACTORY)
        own = built_here and getattr(training, "running_its_own", False)
        return answer_to(error, surveying=not own)

    def _ran_on(self, found: AfterReading) -> NoReturn:
        self.answer(Answer(status=Status.RAN_ON, after=found))

    def ran_on(self, error: BaseException | None = None) -> Answer | None:
        """What followed learn() in a script that has ended, None where it never learned.

        An exit is no failure.
        """
        if not self.after.begun or os.getpid() != self.own:
            return None
        found = self.after.ended(None if isinstance(error, SystemExit) else error)
        return Answer(status=Status.RAN_ON, after=found)

    def observed(self) -> Answer | None:
        """What was seen of a run that has ended by itself, None where none was observed."""
        if self.observer is None:
            return None
        peaks, rows = self.observer.peaks, self.observer.rows
        return Answer(status=Status.OBSERVED, peaks=peaks, rows=rows)

    def tried(self, code: Any = None) -> Answer | None:
        """Answer with what was seen of a loop in a script that has ended, if it updated.

        Where it ended badly, only if that may be because something was brought forward.
        """
        if os.getpid() != self.own:
            return None
        failed = code not in (None, 0)
        return self.loop.ended(failed=failed) or (None if failed else self.counted.ended())

    def _tried(self, found: Answer) -> NoReturn:
        imports = {name: dict(parts) for name, parts in self.imports.bytes.items()}
        self.answer(replace(found, imports=imports, files=dict(self.imports.files)))

    def _end_observing(self) -> None:
        found = self.observed()
        assert found is not None
        self.answer(found)


def _import(name: str) -> None:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise  # the module is there, and what it needs is not
        raise SpecError(f"imports: there is no module {name}") from error


def _look_at(
    training: Training, job: Job, stopped: int, held: Mapping[str, int], scratch: Path
) -> dict[str, Any]:
    """The fields of an answer that tell what was found."""
    if not isinstance(training, Driven):
        raise Unsupported(f"{type(training).__name__} can be observed, but not driven")
    if job.look is Look.SURVEY:
        found = _survey(training, stopped, scratch, device=job.device)
        return {**found, "readings": replace(found["readings"], held=held)}
    return _rehearse(training, job, scratch)


def _survey(training: Driven, stopped: int, scratch: Path, *, device: bool) -> dict[str, Any]:
    """Facts and readings, from a little collecting and small updates."""
    training.prepare()
    spec = training.facts()
    larger = {**spec.knobs, **scaled(spec, times=2)}
    surveyor = Surveyor(training, stopped=stopped, knobs=spec.knobs, larger=larger, device=device)
    beside = training.beside()
    readings = with_beside(surveyor.run(), beside, scratch)
    # Optimizers have their state now, and updates have shown how they go about.
    spec = training.facts()
    if beside.make_env is not None and readings.env_each >= _HEAVY_ENV and not beside.workers:
        alike = built_alike(beside.make_env)
        spec = replace(spec, built_alike=alike.names, built_alike_bytes=alike.bytes)
    return {"status": Status.SURVEYED, "spec": spec, "readings": readings}


def _rehearse(training: Driven, job: Job, scratch: Path) -> dict[str, Any]:
    """Peaks at the scales that the job asks for, smallest first, or at the run's own size."""
    training.prepare()
    own = training.facts()
    rehearsal = Rehearsal(training, scratch, job.seconds)
    found = []
    for scale in job.scales or (own.scale,):
        moments = rehearsal.run({**own.knobs, **scale})
        found.append(Rehearsed(knobs=dict(scale), moments=moments))
    return {"status": Status.REHEARSED, "rehearsed": tuple(found)}
