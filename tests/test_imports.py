"""Imports go one way, and nothing heavy is loaded before it is needed."""

from __future__ import annotations

import ast
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import memfit

PACKAGE = Path(memfit.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

BASE = {"model", "errors", "units"}
# What each room may import beside itself. Those that wire the rooms may import all of them.
ALLOWED = {
    "errors": set[str](),
    "units": {"errors"},
    "model": set[str](),
    "sources": BASE,
    "formulas": BASE,
    "device": BASE,
    "libraries": BASE | {"formulas", "dropins"},  # which are put in where a fix is tried
    "measure": BASE | {"device", "inside"},  # the words in which holders are told
    "dropins": BASE,
    "checks": BASE | {"formulas", "syntax"},
    "syntax": set[str](),
    "analyses": BASE | {"formulas", "checks"},
    "render": BASE,
    "serve": BASE,
    "cli": BASE | {"api", "render", "serve"},
    "inside": set[str](),
    # What works inside another system plans and runs as any user would.
    "integrations": BASE | {"analyses", "inside", "measure", *memfit.__all__},
    "systems": BASE | {"dropins", "integrations", "tracking", *memfit.__all__},
    "tracking": BASE | {"analyses", "measure"},
    "__main__": {"cli"},
}
WIRING = {"__init__", "api", "child"}

# Libraries that only one room may use.
ONLY_IN = {
    "rich": {"render"},
    "textual": {"render"},
    "plotly": {"render"},
    "typer": {"cli"},
    "pydantic": {"sources"},
    "starlette": {"serve"},
    "uvicorn": {"serve"},
}


def imports(file: Path) -> Iterator[str]:
    """Every module that a file imports anywhere, with `from a import b` as `a.b`."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room_of(file: Path) -> str:
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(PACKAGE)))
def test_rooms_import_only_what_they_may(file: Path) -> None:
    room = room_of(file)
    own = {name.split(".")[1] for name in imports(file) if name.startswith("memfit.")}
    if room not in WIRING:
        assert own <= ALLOWED[room] | {room}
    others = {name.split(".")[0] for name in imports(file)}
    if room in ("model", "errors", "units"):
        assert others - {"memfit"} <= sys.stdlib_module_names
    for library, rooms in ONLY_IN.items():
        assert library not in others or room in rooms


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(PACKAGE)))
def test_files_fit_on_a_few_screens_and_say_what_they_are(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 400
    if text.strip():
        assert ast.get_docstring(ast.parse(text)), "say in a sentence what this file is for"


HEAVY = {
    *("torch", "stable_baselines3", "sb3_contrib", "skrl", "gymnasium", "jax", "pygame"),
    *("rich", "plotly"),
}


def loaded(code: str) -> set[str]:
    """The top-level modules that a fresh Python has loaded after this code."""
    report = "import sys\nsys.stderr.write(' '.join({m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(done.stderr.split())


def test_importing_memfit_is_light() -> None:
    assert not loaded("import memfit") & HEAVY


def test_help_is_light() -> None:
    code = "from memfit.cli import main\nassert main(['--help']) == 0"
    assert not loaded(code) & (HEAVY | {"numpy", "pydantic"})


def test_help_answers_within_a_quarter_of_a_second() -> None:
    """Time of the processor, so that other work on the machine does not count."""
    times = []
    for _ in range(5):
        before = _children_seconds()
        subprocess.run([sys.executable, "-m", "memfit", "--help"], capture_output=True, check=True)
        times.append(_children_seconds() - before)
    assert min(times) <= 0.25


def _children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def test_the_public_surface_is_small_and_there() -> None:
    names = memfit.__all__
    assert 0 < len(names) <= 18
    assert len(set(names)) == len(names)
    for name in names:
        assert getattr(memfit, name) is not None
