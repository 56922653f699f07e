"""The program that runs in the disposable child: it runs a target, stops it, and surveys it.

Started by `memfit.measure.children.sandbox` as `python -m memfit.child JOB RESULT`. All code of
the user runs here; the answer is written to RESULT as JSON, and the process ends at once without
unwinding the user's code.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import traceback
import weakref
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memfit.errors import SpecError
from memfit.measure.kernel.proc import PeakMeter
from memfit.sources import failure, hooks, knobs
from memfit.sources.confine import confine, end_with_parent
from memfit.sources.shield import Shield

if TYPE_CHECKING:
    from memfit.measure.survey.observe import Observer


class Child:
    """One job: which target, how to look at it, and where the answer goes."""

    def __init__(self, job: dict[str, Any], result: Path) -> None:
        self.job = job
        self.result = result
        self.meter = PeakMeter()
        self.env_fns: list[Any] = []
        self.skipped: list[weakref.ref[Any]] = []
        self.observer: Observer | None = None

    def answer(self, **fields: Any) -> None:
        """Write the result and end: no `finally` of the user's, no exit handler, runs."""
        partial = self.result.with_suffix(".part")
        partial.write_text(json.dumps(fields))
        partial.rename(self.result)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

    # -- hooks ---------------------------------------------------------------------------------

    def notice_envs(self, vec_env: Any, env_fns: list[Any]) -> None:
        self.env_fns = env_fns

    def workers_to_start(self, start_method: str) -> int:
        # A forked worker starts in no time, and two of them show what they share; any other
        # imports everything anew.
        if self.job.get("observe"):
            return sys.maxsize
        return 2 if start_method == "fork" or self.job.get("scales") else 1

    def install(self) -> None:
        scratch = self.job["scratch"]
        shield = Shield(scratch)
        shield.install()
        confine((scratch, "/dev", "/proc"))
        hooks.ImportHooks(
            {
                **shield.hooks(),
                "numpy": hooks.reserve_without_limit,
                "stable_baselines3.common.base_class": hooks.stop_at_learn(self.on_learn),
                "stable_baselines3.common.vec_env.subproc_vec_env": hooks.few_workers(
                    self.workers_to_start, self.notice_envs
                ),
                "stable_baselines3.common.vec_env.dummy_vec_env": hooks.notice_envs(
                    self.notice_envs
                ),
            }
        ).install()
        if self.job.get("skip"):
            hooks.ImportHooks(hooks.skipped_learns()).install()
        if self.job.get("knobs"):
            hooks.ImportHooks(knobs.changing(self.job["knobs"])).install()

    # -- targets -------------------------------------------------------------------------------

    def run(self) -> None:
        self.install()
        kind = self.job["kind"]
        if kind == "script":
            self.run_script(self.job["target"], self.job["args"])
        elif kind == "factory":
            self.run_factory(self.job["target"])
        elif kind == "spec":
            self.run_spec(self.job["spec"])
        elif kind == "torch":
            self.run_pickled()

    def run_script(self, path: str, args: list[str]) -> None:
        sys.argv = [path, *args]
        sys.path.insert(0, str(Path(path).resolve().parent))
        runpy.run_path(os.path.abspath(path), run_name="__main__")  # noqa: PTH100 - as Python does

    def run_factory(self, target: str) -> None:
        import importlib

        module_name, _, name = target.partition(":")
        sys.path.insert(0, str(Path.cwd()))
        made = getattr(importlib.import_module(module_name), name)()
        if hasattr(made, "_setup_learn"):
            made._setup_learn(self.job.get("total_timesteps"))
        elif type(made).__name__ == "TorchRun":
            self.on_torch_run(made)

    def run_spec(self, facts: dict[str, Any]) -> None:
        import importlib

        sys.path.insert(0, str(Path.cwd()))
        try:
            for name in facts["imports"]:
                importlib.import_module(name)
            if facts["library"] == "torch":
                from memfit.sources import spec_torch

                self.on_program(spec_torch.from_spec(facts))
            else:
                from memfit.sources import spec_sb3

                spec_sb3.learn(facts, Path(self.job["scratch"]))
        except SpecError as error:
            self.answer(status="bad spec", reason=str(error))

    def run_pickled(self) -> None:
        import base64
        import pickle

        self.on_torch_run(pickle.loads(base64.b64decode(self.job.pop("pickle"))))

    def on_torch_run(self, run: Any) -> None:
        from memfit.sources.torch import from_run

        self.on_program(from_run(run))

    # -- where it would learn ------------------------------------------------------------------

    def on_learn(
        self, model: Any, total_timesteps: int | None, callback: Any, rest: Callable[..., Any]
    ) -> Any:
        if missing := knobs.unchanged(model, self.job.get("knobs", {})):
            self.answer(status="no setting", missing=missing, known=knobs.settings_of(model))
        if self.job.get("observe") and hasattr(model, "rollout_buffer"):
            from memfit.measure.survey.observe import Observer

            ready = rest(keep_callback=True)
            self.observer = Observer(
                model, self.job["observe"], lambda seen: self.answer(status="observed", **seen)
            )
            return ready
        if len(self.skipped) < self.job.get("skip", 0):
            self.skipped.append(weakref.ref(model))
            raise hooks.SkipLearn
        stopped = self.meter.now()
        rehearsed = self.job.get("scales") or self.job.get("observe")
        look = self.rehearse if rehearsed else self.survey
        try:
            fields = look(model, total_timesteps, callback, rest, stopped)
        except BaseException as error:  # noqa: BLE001 - whatever its own code raises is the answer
            self.answer(**failed(error, surveying=True))
        else:
            earlier = [skipped() for skipped in self.skipped]
            again, alive = model in earlier, any(m is not None for m in earlier)
            self.answer(status="surveyed", again=again, earlier_alive=alive, **fields)

    def on_program(self, program: Any) -> None:
        """A plain torch run is here where a script would begin to learn."""
        stopped = self.meter.now()
        try:
            rehearsed = self.job.get("scales") or self.job.get("observe")
            look = self.rehearse_program if rehearsed else self.survey_program
            fields = look(program, stopped)
        except BaseException as error:  # noqa: BLE001 - whatever its own code raises is the answer
            if self.job["kind"] == "spec" and failure.passed_through(error, "program.py"):
                reason = f"its networks do not run: {type(error).__name__}: {error}"
                self.answer(status="bad spec", reason=reason)
            self.answer(**failed(error, surveying=self.job["kind"] == "spec"))
        else:
            self.answer(status="surveyed", **fields)

    def survey_program(self, program: Any, stopped: int) -> dict[str, Any]:
        """Facts and readings of a plain torch run, from a few small steps."""
        from memfit.formulas import torch as formulas
        from memfit.measure.survey.torch_survey import Sizes, TorchSurveyor

        spec = program.facts
        full, larger = (
            Sizes.of(formulas.sizes(spec, at))
            for at in (spec.knobs, formulas.scaled(spec, times=2))
        )
        readings = TorchSurveyor(program, stopped).run(full, larger)
        spec = replace(spec, networks=program.networks())
        return {"spec": asdict(spec), "readings": asdict(readings)}

    def rehearse_program(self, program: Any, stopped: int) -> dict[str, Any]:
        """Peaks of a plain torch run at the scales that the job asks for, or at its own."""
        from memfit.formulas import torch as formulas
        from memfit.measure.survey.torch_rehearsal import TorchRehearsal
        from memfit.measure.survey.torch_survey import Sizes

        rehearsal = TorchRehearsal(program, self.job["seconds"])
        rehearsed = []
        for scale in self.job.get("scales") or [{"rows": formulas.scale(program.facts)}]:
            at = formulas.knobs_at(program.facts, scale["rows"])
            moments = rehearsal.run(Sizes.of(formulas.sizes(program.facts, at)))
            rehearsed.append({**scale, "moments": moments})
        return {"rehearsed": rehearsed}

    def survey(
        self,
        model: Any,
        total_timesteps: int | None,
        callback: Any,
        rest: Callable[..., Any],
        stopped: int,
    ) -> dict[str, Any]:
        """Facts and readings, from a few env steps and small updates."""
        from memfit.formulas.buffer_arrays import full_bytes
        from memfit.measure.survey.rehearsal import Sb3Rehearsal
        from memfit.measure.survey.surroundings import (
            cost_of_one_env,
            evaluate_bytes,
            pickled_copies,
            read_workers,
            save_bytes,
        )
        from memfit.measure.survey.surveyor import Surveyor
        from memfit.sources import sb3

        spec = sb3.read(model, total_timesteps, callback)
        rehearsal = Sb3Rehearsal(model, sb3.array_names(spec), lambda: rest()[1])
        rehearsal.find_windows()
        survey = Surveyor(model, rehearsal, stopped).run(full_bytes(spec))
        spec = sb3.read(model, total_timesteps, callback)  # the optimizer's state is there now
        readings = asdict(survey)
        if spec.vec_env is not None and spec.vec_env.start_method:
            readings["workers"] = asdict(read_workers(model.env.unwrapped.processes))
        else:
            readings["env_each"] = cost_of_one_env(self.env_fns)
        eval_env = sb3.eval_env(callback)
        if eval_env is not None:
            readings["evaluate_bytes"] = evaluate_bytes(model, eval_env)
        if any(c.kind == "save" for c in spec.callbacks):
            readings["save_bytes"] = save_bytes(model, Path(self.job["scratch"]))
        if any(c.saves_replay_buffer for c in spec.callbacks):
            readings["pickled_copies"] = pickled_copies(Path(self.job["scratch"]))
        return {"spec": asdict(spec), "readings": readings}

    def rehearse(
        self,
        model: Any,
        total_timesteps: int | None,
        callback: Any,
        rest: Callable[..., Any],
        stopped: int,
    ) -> dict[str, Any]:
        """Peaks of a rehearsal at the scales that the job asks for, smallest first, or in full."""
        from memfit.formulas.buffer_arrays import filled_rows
        from memfit.measure.survey.full_size import FullSize, Scale
        from memfit.measure.survey.rehearsal import Sb3Rehearsal
        from memfit.sources import sb3

        spec = sb3.read(model, total_timesteps, callback)
        saving = [c for c in spec.callbacks if c.kind == "save"]
        saves = "model" if saving else ""
        if not spec.on_policy and any(c.saves_replay_buffer for c in saving):
            saves = "replay"
        full = FullSize(
            model,
            Sb3Rehearsal(model, sb3.array_names(spec), lambda: rest()[1]),
            Path(self.job["scratch"]),
            self.job["seconds"],
        )
        whole = {"batch": model.batch_size, "rows": filled_rows(spec).evaluate(spec.knobs)}
        rehearsed = []
        for scale in self.job.get("scales") or [whole]:
            moments = full.run(Scale(**scale), sb3.eval_env(callback), saves)
            rehearsed.append({**scale, "moments": moments})
        return {"rehearsed": rehearsed}


def failed(error: BaseException, *, surveying: bool = False) -> dict[str, Any]:
    """The answer for an exception: whose failure it is, and what its author should see."""
    if surveying and not failure.is_targets(error):
        return {"status": "survey failed", "output": traceback.format_exc()}
    if (missing := failure.missing_extra(error)) is not None:
        return {"status": "missing extra", "library": missing[0], "extra": missing[1]}
    return {"status": "target failed", "output": failure.own_traceback(error)}


def exited(code: Any) -> dict[str, Any]:
    """The answer for a target that called `sys.exit`."""
    if code in (None, 0):
        return {"status": "never learned"}
    said = f"it ended with exit code {code}" if isinstance(code, int) else str(code)
    return {"status": "target failed", "output": said}


def main() -> None:
    end_with_parent()
    job_path, result_path = sys.argv[1:3]
    child = Child(json.loads(Path(job_path).read_text()), Path(result_path))
    own = os.getpid()
    try:
        child.run()
        if child.observer is not None:  # it learned for less than was to be seen
            child.observer.end()
        fields: dict[str, Any] = {"status": "never learned"}
    except SystemExit as stop:
        fields = exited(stop.code)
    except BaseException as error:  # noqa: BLE001 - whatever the target raises is the answer
        fields = failed(error)
    if os.getpid() != own:  # a fork of the target came to its end; the target itself goes on
        os._exit(0)
    child.answer(**fields)


if __name__ == "__main__":
    main()
