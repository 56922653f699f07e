"""Results on disk: one JSON file a stage, merged by the name of the case."""

from __future__ import annotations

import fcntl
import json
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.accuracy.case import Case

RESULTS = Path(__file__).parent / "results"


class Store:
    """The results of one stage, written whole after each case."""

    def __init__(self, stage: str, folder: Path = RESULTS) -> None:
        self.path = folder / f"{stage}.json"
        self._lock = threading.Lock()

    def load(self) -> dict[str, dict[str, Any]]:
        """Read every result, by case."""
        if not self.path.exists():
            return {}
        results: dict[str, dict[str, Any]] = json.loads(self.path.read_text())
        return results

    def current(self, cases: Iterable[Case]) -> dict[str, dict[str, Any]]:
        """Read the results that were had with the arguments that the cases have now."""
        results = self.load()
        return {
            case.name: results[case.name]
            for case in cases
            if case.name in results and results[case.name]["args"] == list(case.args)
        }

    def put(self, case: Case, result: dict[str, Any]) -> None:
        """Add or replace the result of one case."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._lock, self.path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            results = self.load()
            results[case.name] = {"args": list(case.args), **result}
            draft = self.path.with_suffix(".tmp")
            draft.write_text(json.dumps(dict(sorted(results.items())), indent=1) + "\n")
            draft.replace(self.path)
