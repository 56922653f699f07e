"""What benchmarks in stages share: results that are kept, progress, and the command line."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def keep(results: Path, name: str, value: Any) -> None:
    """Write a result."""
    results.mkdir(exist_ok=True)
    (results / f"{name}.json").write_text(json.dumps(value, indent=1) + "\n")


def say(text: str) -> None:
    """Print a line of progress."""
    print(text, file=sys.stderr, flush=True)


def run_stage(name: str, about: str | None, stages: Mapping[str, Callable[[], object]]) -> None:
    """Run the stage that the command line names."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=about)
    parser.add_argument("stage", choices=stages)
    stages[parser.parse_args().stage]()
