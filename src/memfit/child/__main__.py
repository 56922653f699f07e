"""The disposable child's program: `python -m memfit.child JOB RESULT SCRATCH WAY`.

Started by `memfit.measure.children.sandbox`. All code of the user runs here; the answer is written
to RESULT as JSON, and the process ends at once without unwinding the user's code.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path


def main() -> None:
    """Run the job's target and answer, whatever it does."""
    from memfit.measure.children.way import Way
    from memfit.model.job import Answer, Job, Look, Status
    from memfit.model.json_loader import from_json

    given, result, scratch = (Path(word) for word in sys.argv[1:4])
    job, way = from_json(Job, json.loads(given.read_text())), Way(sys.argv[4])
    if job.look is Look.STEP:
        from memfit.child.env.stepped_env import step_env

        step_env(job, result, scratch, way)
    from memfit.child.failures import answer_to, answer_to_exit
    from memfit.child.target import Child

    child = Child(job, result, scratch, way)
    own = os.getpid()
    try:
        child.run()
        answer = child.observed() or child.ran_on() or child.tried()
        answer = answer or Answer(status=Status.NEVER_LEARNED)
    except SystemExit as stop:
        answer = child.ran_on(stop) or child.tried(stop.code) or answer_to_exit(stop.code)
    except BaseException as error:  # noqa: BLE001 - whatever the target raises is the answer
        answer = child.ran_on(error) or child.tried(1) or answer_to(error)
    if os.getpid() != own:  # a fork of the target came to its end; the target itself goes on
        os._exit(0)
    child.answer(replace(answer, progress=child.loop.progress()))


if __name__ == "__main__":
    main()
