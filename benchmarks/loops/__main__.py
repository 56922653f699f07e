"""Command line of the benchmark: ``python -m benchmarks.loops STAGE``."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.accuracy.__main__ import describe, interrupt
from benchmarks.accuracy.isolation import private_libraries
from benchmarks.accuracy.store import Store
from benchmarks.loops import plan, table, truth
from benchmarks.loops.calibrate import factors
from benchmarks.loops.case import REPORT, TUNING, Loop
from benchmarks.loops.cases import CASES
from benchmarks.stages import say

RESULTS = Path(__file__).parent / "results"
STAGES = ("truth", "twice", "plan", "whatif", "calibrate", "table", "list")


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loops", description=__doc__)
    parser.add_argument("stage", choices=STAGES)
    parser.add_argument("--only", metavar="SUBSTRING", help="only cases with this in their name")
    parser.add_argument("--group", choices=[TUNING, REPORT], help="only cases of this group")
    parser.add_argument("--again", action="store_true", help="also cases that have a result")
    return parser.parse_args()


class Truth:
    """Measures loops, each on private copies of the libraries that it maps."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack
        self._made: dict[tuple[str, ...], tuple[list[str], float]] = {}

    def __call__(self, case: Loop) -> dict[str, Any]:
        if case.needs not in self._made:
            prefix = self._stack.enter_context(private_libraries(truth.used(case)))
            if not prefix:
                say("no private mounts allowed: other Pythons will distort the truth")
            self._made[case.needs] = prefix, truth.import_seconds(prefix, case)
        return truth.measure(case, *self._made[case.needs])


def run_stage(
    name: str, cases: list[Loop], measure: Callable[[Loop], dict[str, Any]], *, again: bool
) -> int:
    """Run one stage over cases, keeping each result; return how many failed."""
    store = Store(name, RESULTS)
    known = store.current(cases)
    todo = [case for case in cases if again or case.name not in known]
    say(f"{name}: {len(todo)} of {len(cases)} cases to run")
    failures = 0
    for number, case in enumerate(todo, 1):
        where = f"[{number}/{len(todo)}] {case.name}"
        if case.missing:
            say(f"{where}: left out, since this Python has no {', '.join(case.missing)}")
            continue
        result = measure(case)
        store.put(case, result)
        say(f"{where}: {describe(result)}")
        failures += not result["ok"]
    return failures


def main() -> int:
    """Run one stage over the cases asked for; 1 if a training failed."""
    args = parse_args()
    cases = [
        case
        for case in CASES
        if (args.only is None or args.only in case.name) and args.group in (None, case.group)
    ]
    doubled = [case for case in cases if case.doubled]
    failures = 0
    with contextlib.ExitStack() as stack:
        match args.stage:
            case "list":
                print(
                    *(f"{case.group:8}{' '.join((case.name, *case.args))}" for case in cases),
                    sep="\n",
                )
            case "calibrate":
                print(factors(RESULTS))
            case "table":
                table.write(RESULTS)
            case "truth":
                failures = run_stage("truth", cases, Truth(stack), again=args.again)
            case "twice":
                twice = [case.at_twice() for case in doubled]
                failures = run_stage("twice", twice, Truth(stack), again=args.again)
            case "plan":  # what it does not answer is a miss in the table, not a failure here
                run_stage("plan", cases, plan.predict, again=args.again)
            case "whatif":
                run_stage("whatif", doubled, plan.predict_twice, again=args.again)
    return 1 if failures else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, interrupt)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
