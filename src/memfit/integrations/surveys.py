"""How a space is surveyed: by calling its objective in a child, or by planning a target."""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import inspect
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from memfit import plan
from memfit.errors import UsageError
from memfit.inside.objective import PARAMETER, middle
from memfit.integrations.planned_space import Parameter, Survey, Surveyed, Values
from memfit.model import Plan

CHILD = "memfit.inside.objective"
SPEC = ".toml"
_ANY_SHARE = 2**40  # what a command that is only planned may take


def objective_name(objective: str | Callable[..., Any]) -> str:
    """`module:function` or `/path/file.py:function`, which a process of its own can load."""
    if not isinstance(objective, str):
        return _name_of(objective)
    module, colon, function = objective.rpartition(":")
    if not colon or not function.isidentifier() or not module:
        raise UsageError(
            f"{objective!r} is no objective: write module:function, give the function itself, or "
            "a command as a list of words"
        )
    path = _file_of(module)
    if path is not None and not _defines(path, function):
        raise UsageError(f"{path} has no {function}: name the function that takes the trial")
    return f"{Path(module).absolute()}:{function}" if module.endswith(".py") else objective


def _name_of(objective: Callable[..., Any]) -> str:
    function = inspect.unwrap(objective)
    name = getattr(function, "__qualname__", "<none>")
    module = getattr(function, "__module__", None) or ""
    if not name.replace(".", "").isidentifier():
        raise UsageError(
            f"{name} cannot be loaded by a process of its own: give a function that is defined at "
            "the top of a module"
        )
    if module != "__main__":
        return f"{module}:{name}"
    path = getattr(sys.modules["__main__"], "__file__", None)
    if path is None or not os.path.isfile(path):  # noqa: PTH113
        raise UsageError(
            f"{name} was typed in and is in no file: put it into a module, such as train.py"
        )
    return f"{Path(path).absolute()}:{name}"


def _file_of(module: str) -> Path | None:
    """The file of a module, which is not imported for it."""
    if module.endswith(".py"):
        path = Path(module)
        if not path.is_file():
            raise UsageError(f"there is no file {module}: name the one that has the objective")
        return path
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        found = None
    if found is None:
        found = importlib.machinery.PathFinder.find_spec(module, [str(Path.cwd())])
    if found is None:
        raise UsageError(
            f"there is no module {module}: start the study where it can be imported, or write "
            "/path/file.py:function"
        )
    return Path(found.origin) if found.origin and found.origin.endswith(".py") else None


def _defines(path: Path, name: str) -> bool:
    """Whether a file gives a name anything, as far as its text tells."""
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return True
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return True
        if isinstance(node, ast.alias) and name in (node.asname or node.name, "*"):
            return True
    return False


def child_job(objective: str, **more: Any) -> str:
    """What the process of an objective is told."""
    paths = [os.path.abspath(path) for path in sys.path]  # noqa: PTH100 - "" is where we are
    return json.dumps({"objective": objective, "paths": paths, **more})


def objective_survey(
    objective: str, options: Mapping[str, Any], *, space: Mapping[str, Any] | None = None
) -> Survey:
    """Plans an objective with some of its values fixed, and hears what it asks for.

    With a `space`, it is a function that takes a configuration instead of a trial.
    """
    known: dict[str, Parameter] = {}

    def survey(values: Values) -> Surveyed:
        fixed = {name: _told(value, known.get(name)) for name, value in values.items()}
        planned = plan(
            CHILD, module=True, args=[child_job(objective, fixed=fixed, space=space)], **options
        )
        found, used = parameters_in(planned)
        known.update(found)
        return Surveyed(plan=planned, values={**values, **used}, parameters=found)

    return survey


def _told(value: Any, parameter: Parameter | None) -> Any:
    """A value as the child takes it: the place of a choice."""
    if parameter is None or parameter.kind != "categorical":
        return value
    return parameter.choices.index(value)


def parameters_in(planned: Plan) -> tuple[dict[str, Parameter], dict[str, Any]]:
    """What an objective has asked its trial for while it was planned, and what it was given."""
    parameters, values = {}, {}
    for line in planned.output.splitlines():
        if not line.startswith(PARAMETER):
            continue
        told = json.loads(line.removeprefix(PARAMETER))
        value = told.pop("value")
        if told["kind"] == "categorical":
            told["choices"] = tuple(told["choices"])
            value = told["choices"][value]
        parameters[told["name"]] = Parameter(**told)
        values[told["name"]] = value
    return parameters, values


def target_survey(
    target: str,
    args: Sequence[str],
    space: Mapping[str, Parameter],
    *,
    knobs: Mapping[str, str],
    ignore: Sequence[str],
    fixed: Mapping[str, int],
    options: Mapping[str, Any],
) -> Survey:
    """Plans a spec with other knobs, or a command with other words."""
    is_spec = target.endswith(SPEC)

    def survey(values: Values) -> Surveyed:
        used = {**{name: middle_of(parameter) for name, parameter in space.items()}, **values}
        words = [with_values(word, {"share": _ANY_SHARE, **used}) for word in args]
        given = {
            knobs.get(name, name): int(used[name])
            for name, parameter in space.items()
            if is_spec and parameter.numbers and name not in ignore
        }
        planned = plan(target, args=words, knobs={**fixed, **given} or None, **options)
        return Surveyed(plan=planned, values=used, parameters=space)

    return survey


def middle_of(parameter: Parameter) -> Any:
    """A value from the middle of its range or choices."""
    found = middle(vars(parameter))
    return parameter.choices[found] if parameter.kind == "categorical" else found


def with_values(word: str, values: Values) -> str:
    """A word of a command with values where it says `{name}`."""
    for name, value in values.items():
        word = word.replace(f"{{{name}}}", str(value))
    return word


def check_words(words: Sequence[str], names: Sequence[str]) -> None:
    """Refuse a command that leaves a parameter out."""
    lacking = [name for name in names if not any(f"{{{name}}}" in word for word in words)]
    if lacking:
        raise UsageError(
            f"the command does not use {', '.join(f'{{{name}}}' for name in lacking)}: write it "
            "where the value goes, as in --batch-size {batch_size}, or leave it out of the space"
        )
