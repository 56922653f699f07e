"""What a report carries for programs, so that memfit reads it back: its JSON, and its blocks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, get_args

from memfit.errors import UsageError
from memfit.model import at_fewer_times, fewer_points
from memfit.model.json_loader import from_json, to_json
from memfit.render.blocks import Block

RESULT, BLOCKS, PICTURES = "memfit-result", "memfit-blocks", "memfit-pictures"
_MOST_READINGS = 20_000  # in a report; the recording itself has all of them
_MOST_PARTS = 2000  # of processes
_KINDS: dict[str, type[Block]] = {
    kind.__name__: kind for base in get_args(Block) for kind in (base, *base.__subclasses__())
}
_TYPES = {
    RESULT: "application/json",
    BLOCKS: "application/vnd.memfit.blocks+json",
    PICTURES: "application/vnd.plotly.v1+json",
}
# What could end the element or begin another; all beyond ASCII is escaped by JSON itself.
_UNSAFE = re.compile("[<>&\x7f]")


@dataclass(frozen=True, kw_only=True)
class Report:
    """What was read back of a report."""

    data: dict[str, Any]
    blocks: tuple[Block, ...]


def safe_json(value: Any) -> str:
    """JSON that may stand in a script element."""
    text = json.dumps(value, separators=(",", ":"))
    return _UNSAFE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def data_element(name: str, value: Any) -> str:
    """An element that holds data, and is never run."""
    return f'<script type="{_TYPES[name]}" id="{name}">{safe_json(value)}</script>'


def blocks_json(blocks: Iterable[Block]) -> list[dict[str, Any]]:
    """Blocks, each with its kind."""
    return [{"block": type(block).__name__, **to_json(block)} for block in blocks]


def kept_data(data: dict[str, Any]) -> dict[str, Any]:
    """The JSON that a report carries: of very long recordings and trees not every reading."""
    kept = dict(data)
    if isinstance(kept.get("readings"), list):
        kept["readings"] = _curve(kept["readings"])
    if isinstance(kept.get("members"), list):
        members = kept["members"]
        most = max(2, _MOST_READINGS // max(1, len(members)))
        curves = at_fewer_times([member["readings"] for member in members], most)
        kept["members"] = [
            {**member, "readings": curve} for member, curve in zip(members, curves, strict=True)
        ]
    if isinstance(kept.get("processes"), list):
        kept["processes"] = list(_processes(kept["processes"]))
    return kept


def _curve(readings: list[Any]) -> list[Any]:
    return fewer_points(readings, _MOST_READINGS, lambda r: r[1] if isinstance(r, list) else 0)


def _processes(processes: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Processes, without the parts of those for which there is no room."""
    parts = 0
    for process in processes:
        parts += len(process.get("parts", ()))
        yield process if parts <= _MOST_PARTS else {**process, "parts": None}


def is_report(start: bytes) -> bool:
    """Whether a file begins as a report does."""
    return start[:100].lstrip().lower().startswith(b"<!doctype html")


def read_report(page: bytes) -> Report:
    """The result that a report carries; nothing of it is run."""
    text = page.decode("utf-8", "replace")
    try:
        data = json.loads(_element(text, RESULT))
        if not isinstance(data, dict):
            raise ValueError("no result")
        return Report(data=data, blocks=tuple(map(_block, json.loads(_element(text, BLOCKS)))))
    except (ValueError, TypeError, KeyError, RecursionError):
        raise UsageError(
            "this page carries no result of memfit: give one that was written with --format html"
        ) from None


def _element(text: str, name: str) -> str:
    begin = f'<script type="{_TYPES[name]}" id="{name}">'
    _, found, rest = text.partition(begin)
    if not found:
        raise ValueError(f"no {name}")
    return rest.partition("</script>")[0]


def _block(data: dict[str, Any]) -> Block:
    kind = _KINDS[data["block"]]
    return from_json(kind, data, foreign=True)
