"""Command line of the benchmark: ``python -m benchmarks.accuracy STAGE``."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

from benchmarks.accuracy import baselines, calibrate, plan, report, table, truth
from benchmarks.accuracy.case import Case
from benchmarks.accuracy.cases import select
from benchmarks.accuracy.child import stop_all
from benchmarks.accuracy.draw import draw, has_workers
from benchmarks.accuracy.isolation import private_libraries
from benchmarks.accuracy.store import Store

STAGES = ("truth", "plan", "quick", "busy", "probe", "baselines", "table", "calibrate")
EVERY = 5  # of the cases, one in so many is planned beside busy processes too


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("stage", choices=STAGES)
    parser.add_argument("--only", metavar="SUBSTRING", help="only cases with this in their name")
    parser.add_argument("--slice", choices=["small"], help="only the cases of the small slice")
    parser.add_argument(
        "--jobs", type=int, default=1, help="cases at once (truth: of one process each)"
    )
    parser.add_argument(
        "--processes",
        choices=["one", "several"],
        help="only drawn runs of one process, or those with workers",
    )
    parser.add_argument(
        "--part", metavar="K/N", type=part, default=(1, 1), help="every N-th case, from the K-th on"
    )
    parser.add_argument("--again", action="store_true", help="also cases that have a result")
    parser.add_argument("--draw", type=int, metavar="SEED", help="runs drawn at random instead")
    parser.add_argument("--runs", type=int, default=150, help="how many of them")
    parser.add_argument("--times", type=int, default=3, help="how often each is run for its truth")
    return parser.parse_args()


def part(text: str) -> tuple[int, int]:
    """Read which of so many parts is asked for."""
    which, of = (int(word) for word in text.split("/"))
    if not 1 <= which <= of:
        raise ValueError(text)
    return which, of


def stage_function(
    stage: str, stack: contextlib.ExitStack, *, times: int
) -> Callable[[Case], dict[str, Any]]:
    """Return what to do with one case; drawn ones are run so many times."""
    if stage == "truth":
        private = stack.enter_context(private_libraries())
        prefix = [*truth.watched_closely(), *private]
        if not private:
            say("no private mounts allowed: other Pythons will distort the truth")
        if times:
            base = {"import_bytes": truth.import_bytes(prefix)}
            return lambda case: {**truth.measure_often(case, prefix, times), **base}
        return lambda case: truth.measure(case, prefix)
    if stage == "baselines":
        return baselines.measure
    if stage == "busy":
        return plan.predict_busy
    option = "" if stage == "plan" else f"--{stage}"
    return lambda case: plan.predict(case, option)


def say(text: str) -> None:
    """Print a line of progress."""
    print(text, file=sys.stderr, flush=True)


def describe(result: dict[str, Any]) -> str:
    """Sum up a result in a few words."""
    if not result["ok"]:
        return f"FAILED {result['why']}"
    size = result.get("peak_bytes") or result.get("mem_tracker_bytes")
    shown = "none" if size is None else f"{size / (1 << 20):.1f} MiB"
    return f"{shown} in {result['seconds']:.1f} s"


def run_all(
    one: Callable[[tuple[int, Case]], bool], numbered: Iterable[tuple[int, Case]], jobs: int
) -> list[bool]:
    """Run cases at once; when interrupted, end those that run and start no others."""
    with ThreadPoolExecutor(jobs) as pool:
        try:
            return list(pool.map(one, numbered))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            stop_all()
            raise


def interrupt(_signal: int, _frame: FrameType | None) -> None:
    """Treat a request to terminate as one to interrupt."""
    raise KeyboardInterrupt


def main() -> int:
    """Run one stage over the cases asked for; 1 if any of them failed."""
    args = parse_args()
    drawn = args.draw is not None
    if args.stage == "calibrate":
        say(calibrate.factors(args.draw, args.runs))
        return 0
    if args.stage == "table":
        if drawn:
            report.write(args.draw, args.runs)
        else:
            table.write()
        return 0
    store = Store(f"draw{args.draw}-{args.stage}" if drawn else args.stage)
    cases = draw(args.draw, args.runs) if drawn else select(args.only, args.slice == "small")
    if args.stage == "busy":
        cases = cases[::EVERY]
    if args.processes:
        cases = [case for case in cases if has_workers(case) == (args.processes == "several")]
    which, parts = args.part
    cases = cases[which - 1 :: parts]
    known = store.current(cases)
    todo = [case for case in cases if args.again or case.name not in known]
    say(f"{args.stage}: {len(todo)} of {len(cases)} cases to run")
    failures = 0
    with contextlib.ExitStack() as stack:
        if not todo:
            return 0
        measure = stage_function(args.stage, stack, times=args.times if drawn else 0)

        def one(numbered: tuple[int, Case]) -> bool:
            number, case = numbered
            result = measure(case)
            store.put(case, result)
            say(f"[{number}/{len(todo)}] {case.name}: {describe(result)}")
            return bool(result["ok"])

        # The kernel keeps the mark of one process, whatever else runs; trees have to be sampled.
        sampled = args.stage == "truth" and (not drawn or args.processes != "one")
        jobs = 1 if sampled else max(1, args.jobs)
        numbered = enumerate(todo, 1)
        if jobs == 1:
            failures = sum(not one(item) for item in numbered)
        else:
            failures = sum(not ok for ok in run_all(one, numbered, jobs))
    return 1 if failures else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, interrupt)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
