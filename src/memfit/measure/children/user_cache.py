"""Figures kept in the user's cache: what imports cost, and finished runs of a sweep."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


class CachedJson:
    """One file of JSON in the user's cache."""

    def __init__(self, name: str) -> None:
        folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        self.path = Path(folder) / "memfit" / name

    def load(self) -> Any:
        """What was kept; None where the file is missing or not whole."""
        try:
            return json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def save(self, value: Any) -> None:
        """Keep a value; a cache that cannot be written costs time next time, nothing more."""
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.path.parent)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(value, file)
            os.replace(name, self.path)  # noqa: PTH105 - in one step, whoever reads meanwhile

    def forget(self) -> None:
        with contextlib.suppress(OSError):
            self.path.unlink()


class SweepCache(CachedJson):
    """The finished runs of one sweep, as plain fields, so that a killed sweep can go on.

    Its file is named after all that the figures depend on, and removed when the sweep ends.
    """

    def __init__(self, facts: Mapping[str, Any]) -> None:
        text = json.dumps(facts, sort_keys=True, default=str)
        super().__init__(f"sweeps/{hashlib.sha256(text.encode()).hexdigest()[:32]}.json")

    def __iter__(self) -> Iterator[dict[str, Any]]:
        found = self.load()
        if isinstance(found, list):
            yield from (point for point in found if isinstance(point, dict))

    def add(self, point: Mapping[str, Any]) -> None:
        """Keep one more."""
        self.save([*self, dict(point)])
