"""Paths of holders lead to their classes and bounds, and nothing of an env's own is called."""

from __future__ import annotations

import collections
import functools
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from memfit.child.env.resolved_holders import tell

HERE = collections.deque([1, 2], maxlen=9)


class Inner:
    def __init__(self) -> None:
        self.max_entries = 50
        self.table = {1: "a", 2: "b"}


class Game:
    def __init__(self) -> None:
        self.last = collections.deque([1, 2, 3], maxlen=10)
        self.inner = {"one": Inner()}
        self.free: list[int] = [1]
        self.look_up = functools.lru_cache(maxsize=7)(len)

    @property
    def danger(self) -> Any:
        raise AssertionError("a property was called")


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(sys.modules["__main__"], "env", Game(), raising=False)

    def ask(path: str) -> dict[str, Any]:
        file = tmp_path / "tell.json"
        file.write_text(json.dumps([path]))
        tell(file)
        found: dict[str, Any] = json.loads(file.read_text())[path]
        return found

    return ask


@pytest.mark.parametrize(
    ("path", "owner", "bound"),
    [
        ("env.last[*]", "Game", ("maxlen of the deque", 10, 3)),
        ("env.inner['one'].table[*]", "Inner", ("max_entries of Inner", 50, 2)),
        ("env.inner[*].table[*]", "Inner", ("max_entries of Inner", 50, 2)),
        ("env.look_up", "Game", ("maxsize of the cache", 7, 0)),
        ("env.free[*]", "Game", None),
        ("env.danger[*]", "Game", None),
        ("env.gone.away", "Game", None),
    ],
)
def test_a_path_is_followed(told: Any, path: str, owner: str, bound: Any) -> None:
    found = told(path)
    assert found["owner"] == f"{__name__}.{owner}"
    assert Path(found["where"].rpartition(":")[0]).name == Path(__file__).name
    said = tuple(found[key] for key in ("bound", "capacity", "length")) if bound else None
    assert said == bound
    assert bound or "capacity" not in found


def test_variables_of_modules_are_found(told: Any) -> None:
    assert told(f"{__name__}.HERE[*]")["capacity"] == 9
    assert told("nowhere.at.all") == {}
