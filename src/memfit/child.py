"""The program that runs in the disposable child: it runs a target, stops it, and surveys it.

Started by `memfit.measure.sandbox` as `python -m memfit.child JOB RESULT`. Everything that runs a
user's code happens here; the answer is written to RESULT as JSON, and the process ends at once
without unwinding the user's code.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from memfit.measure.proc import PeakMeter
from memfit.sources import hooks


class Child:
    """One job: which target, how to look at it, and where the answer goes."""

    def __init__(self, job: dict[str, Any], result: Path) -> None:
        self.job = job
        self.result = result
        self.meter = PeakMeter()
        self.env_fns: list[Any] = []

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
        return 2 if start_method == "fork" or self.job.get("probe") else 1

    def install(self) -> None:
        hooks.ImportHooks(
            {
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

    # -- targets -------------------------------------------------------------------------------

    def run(self) -> None:
        self.install()
        kind = self.job["kind"]
        if kind == "script":
            self.run_script(self.job["target"], self.job["args"])
        elif kind == "factory":
            self.run_factory(self.job["target"])
        self.answer(status="never learned")

    def run_script(self, path: str, args: list[str]) -> None:
        sys.argv = [path, *args]
        sys.path[0] = str(Path(path).resolve().parent)
        runpy.run_path(path, run_name="__main__")

    def run_factory(self, target: str) -> None:
        import importlib

        module_name, _, name = target.partition(":")
        sys.path.insert(0, os.getcwd())
        made = getattr(importlib.import_module(module_name), name)()
        if hasattr(made, "_setup_learn"):
            made._setup_learn(self.job.get("total_timesteps"))

    # -- where it would learn ------------------------------------------------------------------

    def on_learn(
        self, model: Any, total_timesteps: int | None, callback: Any, rest: Callable[[], Any]
    ) -> None:
        stopped = self.meter.now()
        try:
            fields = self.survey(model, total_timesteps, callback, rest, stopped)
        except BaseException:
            self.answer(status="survey failed", output=traceback.format_exc())
        else:
            self.answer(status="surveyed", **fields)

    def survey(
        self,
        model: Any,
        total_timesteps: int | None,
        callback: Any,
        rest: Callable[[], Any],
        stopped: int,
    ) -> dict[str, Any]:
        from memfit.formulas.arrays import full_bytes
        from memfit.measure.rehearsal import Sb3Rehearsal
        from memfit.measure.surroundings import (
            cost_of_one_env,
            evaluate_bytes,
            read_workers,
            save_bytes,
        )
        from memfit.measure.survey import Surveyor
        from memfit.sources import sb3

        spec = sb3.read(model, total_timesteps, callback)
        rehearsal = Sb3Rehearsal(model, rest)
        survey = Surveyor(model, rehearsal, stopped).run(full_bytes(spec))
        spec = sb3.read(model, total_timesteps, callback)  # the optimizer's state is there now
        readings = asdict(survey)
        if spec.vec_env is not None and spec.vec_env.start_method:
            readings["workers"] = asdict(read_workers(model.env.unwrapped.processes))
        else:
            readings["env_each"] = cost_of_one_env(self.env_fns)
        for part in sb3.callbacks_of(callback):
            if hasattr(part, "eval_env"):
                readings["evaluate_bytes"] = evaluate_bytes(model, part.eval_env)
        if any(c.kind == "save" for c in spec.callbacks):
            readings["save_bytes"] = save_bytes(model, Path(self.job["scratch"]))
        return {"spec": asdict(spec), "readings": readings}


def main() -> None:
    job_path, result_path = sys.argv[1:3]
    child = Child(json.loads(Path(job_path).read_text()), Path(result_path))
    try:
        child.run()
    except SystemExit as stop:
        if stop.code not in (None, 0):
            child.answer(status="target failed", output=f"the target ended with exit code {stop.code}")
        child.answer(status="never learned")
    except BaseException:
        child.answer(status="target failed", output=traceback.format_exc())


if __name__ == "__main__":
    main()
