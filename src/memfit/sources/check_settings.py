"""`[tool.memfit]` of the nearest pyproject.toml: what a check of scripts looks for."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memfit.errors import UsageError

_LISTS = ("select", "ignore", "exclude")
LEVELS = ("info", "warning", "error", "never")


@dataclass(frozen=True, kw_only=True)
class CheckSettings:
    """Settings of `memfit check`; lists of codes or of their prefixes."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    fail_on: str = "error"
    path: str = ""  # of the file that they are from


def check_settings(target: Path) -> CheckSettings:
    """The settings for a target, from the nearest pyproject.toml at it or above."""
    start = target.absolute()
    for folder in (start, *start.parents):
        path = folder / "pyproject.toml"
        if path.is_file():
            return _read(path)
    return CheckSettings()


def _read(path: Path) -> CheckSettings:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {}).get("memfit", {})
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}. Correct it") from None
    if not isinstance(table, dict):
        raise UsageError(f"{path}: tool.memfit must be a table: write [tool.memfit]")
    unknown = sorted(table.keys() - {*_LISTS, "fail-on"})
    if unknown:
        raise UsageError(
            f"{path}: [tool.memfit] has no setting {', '.join(unknown)}: "
            "it has select, ignore, exclude and fail-on"
        )
    lists = {name: _words(path, name, table.get(name, [])) for name in _LISTS}
    for name in ("select", "ignore"):
        lists[name] = tuple(word.upper() for word in lists[name])
    fail_on = table.get("fail-on", "error")
    if fail_on not in LEVELS:
        raise UsageError(f"{path}: fail-on must be one of {', '.join(LEVELS)}")
    return CheckSettings(**lists, fail_on=fail_on, path=str(path))


def _words(path: Path, name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise UsageError(f'{path}: {name} must be a list of words, such as ["MF203"]')
    return tuple(value)
