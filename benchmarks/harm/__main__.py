"""Command line of the benchmark: ``python -m benchmarks.harm STAGE``."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.dropins import test_crafted_replays
from tests.harm import fuzz as generated
from tests.harm.scene import alone, wrong
from tests.harm.table import FAULTS, played
from tests.measure.live import test_answers
from tests.measure.record import test_crafted_recordings

from benchmarks.harm import table
from benchmarks.stages import keep, run_stage, say

HERE = Path(__file__).parent
RESULTS = HERE / "results"
HELD = 60.0  # seconds for which what is stopped stays stopped
AT_ONCE = 3  # most of the time they wait
LOOKED_AT = 2  # trainings at a time: each look takes a core for seconds
LOOKS = {"sb3": 250, "workers": 250, "compile": 250, "jax": 250}
FIRST = 10_000  # seeds of no test


def faults() -> None:
    """Every fault, and the same trainings without memfit."""
    _play(list(FAULTS), [])


def again() -> None:
    """Those faults that were not well, after a change."""
    kept = json.loads((RESULTS / "faults.json").read_text())
    well = [row for row in kept if row["name"] in FAULTS and not row.get("wrong", ["not here"])]
    _play([name for name in FAULTS if name not in {row["name"] for row in well}], well)


def _play(names: Sequence[str], found: list[dict[str, Any]]) -> None:
    """Play these; what they do beside training changes no parameter."""
    kinds = sorted({FAULTS[name].kind for name in names})
    order = list(FAULTS)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        plain = dict(zip(kinds, pool.map(lambda kind: alone(kind, "-"), kinds), strict=True))
        for done in as_completed([pool.submit(played, name, held=HELD) for name in names]):
            result = done.result()
            fault = FAULTS[result["name"]]
            if "not_here" not in result:
                result["wrong"] = wrong(result, fault, plain[fault.kind]["digests"])
            say(f"{result['name']}: {result.get('not_here') or result['wrong'] or 'well'}")
            found.append(result)
            keep(RESULTS, "faults", sorted(found, key=lambda row: order.index(row["name"])))


def explanations() -> None:
    """Trainings that are asked again and again what they hold."""
    found: list[dict[str, Any]] = []
    with ThreadPoolExecutor(LOOKED_AT) as pool:
        for result in pool.map(_looked_at, LOOKS):
            found.append(result)
            keep(RESULTS, "explanations", found)


def _looked_at(kind: str) -> dict[str, Any]:
    """One training, explained from a process of its own."""
    if kind == "jax" and find_spec("jax") is None:
        return {"kind": kind, "not_here": "JAX is not installed"}
    words = [sys.executable, "-m", "benchmarks.harm.looking", kind, str(LOOKS[kind])]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
    say(f"{kind}: {done.stdout}")
    failed = {"kind": kind, "harm": f"ended with {done.returncode}"}
    return json.loads(done.stdout) if not done.returncode else failed


def _recordings(folder: Path) -> Counter[Any]:
    known = folder / "good.db"
    test_crafted_recordings.crafted.good(known)
    return test_crafted_recordings.read(range(FIRST, FIRST + 2000), folder, known)


FUZZED: dict[str, tuple[int, Callable[[Path], Counter[Any]]]] = {
    "specs": (2000, lambda folder: generated.specs(range(FIRST, FIRST + 2000), folder)),
    "recordings": (2000, _recordings),
    "answers": (1000, lambda _: test_answers.asked(range(FIRST, FIRST + 1000))),
    "replay files": (
        500,
        lambda folder: test_crafted_replays.outcomes(range(FIRST, FIRST + 500), folder),
    ),
    "command lines": (
        500,
        lambda folder: generated.command_lines(range(FIRST, FIRST + 500), folder),
    ),
}


def fuzz() -> None:
    """What is generated, given to whoever reads it: no traceback, no wrong data."""
    found = {}
    for name, (count, read) in FUZZED.items():
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                outcomes, failed = read(Path(folder)), ""
            except Exception as error:  # noqa: BLE001  # whatever it is, it is what is looked for
                outcomes, failed = Counter(), repr(error)
        found[name] = {
            "count": count,
            "outcomes": {str(key): value for key, value in sorted(outcomes.items(), key=str)},
            "failed": failed,
        }
        say(f"{name}: {found[name]} in {time.monotonic() - started:.0f} s")
        keep(RESULTS, "fuzz", found)


def tables() -> None:
    """Write the tables, and end with 1 where something is not as it should be."""
    if not table.write(RESULTS, HERE / "README.md"):
        say("something is not as it should be: see benchmarks/harm/README.md")
        sys.exit(1)


STAGES = {
    "faults": faults,
    "again": again,
    "explanations": explanations,
    "fuzz": fuzz,
    "table": tables,
}

if __name__ == "__main__":
    run_stage("harm", __doc__, STAGES)
