"""Runs that a sweep has finished, kept until it is complete, so that a killed one can go on.

Each sweep has a file in the user's cache, named after all that its figures depend on. It is removed
when the sweep ends.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


class SweepCache:
    """The finished runs of one sweep, as plain fields."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        text = json.dumps(facts, sort_keys=True, default=str)
        name = hashlib.sha256(text.encode()).hexdigest()[:32]
        self.path = _folder() / f"{name}.json"

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """What was kept; nothing where the file is missing or not whole."""
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return
        if isinstance(found, list):
            yield from (point for point in found if isinstance(point, dict))

    def add(self, point: Mapping[str, Any]) -> None:
        """Keep one more; a cache that cannot be written is no reason to end a sweep."""
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.path.parent)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump([*self, dict(point)], file)
            os.replace(name, self.path)  # noqa: PTH105 - in one step, whoever reads meanwhile

    def forget(self) -> None:
        with contextlib.suppress(OSError):
            self.path.unlink()


def _folder() -> Path:
    given = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(given) if given else Path.home() / ".cache") / "memfit" / "sweeps"
