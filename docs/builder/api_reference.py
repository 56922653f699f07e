"""The reference of the Python interface, made of signatures and docstrings."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import memfit
from memfit import dropins

# What the page has, in this order: a heading, how it is imported, and its names.
PARTS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("Verbs", "memfit", ("plan", "profile", "sweep", "explain", "run", "listen", "track", "demo")),
    ("Results and their parts", "memfit", ("Plan", "Ledger", "Component", "RunSpec", "TorchRun")),
    ("Small things", "memfit", ("parse_bytes", "format_bytes", "MemfitError")),
    ("Inside a training", "memfit.tracking", ("tree_bytes", "peak_bytes", "peaks_below")),
    ("Inside stable-baselines3", "memfit.tracking.sb3", ("MemoryCallback",)),
    ("Inside an environment", "memfit.tracking.gym", ("MemoryWrapper",)),
    ("A limit of its own", "memfit.tracking.guard", ("Guard", "refuse_beyond")),
)


def parts() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """All parts; public names that are in none of them come last."""
    yield from PARTS
    named = {name for _, module, names in PARTS if module == "memfit" for name in names}
    if others := tuple(name for name in memfit.__all__ if name not in named):
        yield "More", "memfit", others
    yield "Parts that make a run fit", "memfit.dropins", tuple(dropins.__all__)


def api_page() -> str:
    """Every public name."""
    lines = ["# Python interface\n"]
    for heading, module, names in parts():
        lines += [f"## {heading}\n", f"From `{module}`.\n"]
        home = importlib.import_module(module)
        lines += [_entry(name, getattr(home, name)) for name in names]
    return "\n".join(lines)


def _entry(name: str, thing: Any) -> str:
    lines = [f"### {name}\n", f"```python\n{_signature(name, thing)}\n```\n", f"{_doc(thing)}\n"]
    if inspect.isclass(thing):
        for member, what in _members(thing):
            if said := _doc(what):
                lines.append(f"- `{member}`: {said.splitlines()[0]}")
    return "\n".join([*lines, ""])


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that a class of ours has, without those of its bases."""
    for name, what in vars(kind).items():
        if name.startswith("_") or name in {f.name for f in _fields(kind)}:
            continue
        function = getattr(what, "__func__", what)  # of class methods and static methods
        if isinstance(what, property):
            yield name, what
        elif inspect.isfunction(function):
            told = _signature(name, function)
            yield re.sub(r"\((?:self|cls)(?:, )?", "(", told), function


def _fields(kind: type) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()


def _signature(name: str, thing: Any) -> str:
    try:
        told = str(inspect.signature(thing))
    except (TypeError, ValueError):
        return name
    told = re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])", "", told)  # names of types without their modules
    told = re.sub(r"(: |-> )'([^']*)'", r"\1\2", told)  # types as they are written
    told = re.sub(r"<object object at 0x[0-9a-f]+>", "...", told).replace("'", '"')
    if len(name + told) <= 90:
        return name + told
    inside, _, after = told[1:].rpartition(")")
    return f"{name}(\n" + "".join(f"    {p},\n" for p in _split(inside)) + f"){after}"


def _split(parameters: str) -> list[str]:
    """Parameters apart by the commas that are in no brackets."""
    found, depth = [""], 0
    for character in parameters:
        depth += (character in "[({") - (character in "])}")
        if character == "," and not depth:
            found.append("")
        else:
            found[-1] += character
    return [parameter.strip() for parameter in found]


def _doc(thing: Any) -> str:
    """The docstring of its own, less what a dataclass makes up."""
    text = inspect.cleandoc(getattr(thing, "__doc__", None) or "")
    return "" if re.match(r"\w+\([\w:, ]", text) else text
