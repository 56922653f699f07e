"""From a target to a job for the child: a script, a module, a spec, a factory, a live object."""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from memfit.errors import MissingExtra, UsageError
from memfit.model.job import Job, TargetKind
from memfit.sources.launcher import is_launcher, launched
from memfit.sources.module_file import module_file

SPEC, NOTEBOOK = ".toml", ".ipynb"
_PYTHON = re.compile(r"(python|pypy)[\d.]*$")
_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
_COMMAND = "write it as: memfit plan -- python train.py, or memfit plan -- python -m package.train"


def job_of(
    target: str | Path | Any, args: Sequence[str], knobs: Mapping[str, int] | None = None
) -> Job:
    """Tell a script from a factory, a spec and live objects; `knobs` are settings of a spec.

    Without a target, the arguments are a command that starts Python.
    """
    if not isinstance(target, (str, Path)):
        return _object_job(target)
    if target == "":
        return _command_job(list(args))
    path, target = Path(target), str(target)
    if path.suffix == SPEC:
        from memfit.sources import spec

        facts = spec.load(path, knobs)
        notes = tuple(facts.pop("notes"))
        return Job(kind=TargetKind.SPEC, target=target, spec=facts, notes=notes)
    if os.path.isfile(path):  # noqa: PTH113  # a name may be too long
        if path.suffix == NOTEBOOK:
            _check_notebook(path)
            return Job(kind=TargetKind.NOTEBOOK, target=str(path), args=tuple(args))
        _check_script(path)
        return Job(kind=TargetKind.SCRIPT, target=str(path), args=tuple(args))
    if os.path.isdir(path):  # noqa: PTH112  # a name may be too long
        raise UsageError(f"{target} is a directory: name the script in it, such as {path}/train.py")
    module, colon, factory = target.partition(":")
    if colon and module and factory.isidentifier() and "/" not in module:
        return Job(kind=TargetKind.FACTORY, target=target)
    raise UsageError(
        f"there is no file {target!r}: give a training script (train.py), a run spec (run.toml) "
        "or a factory (package.module:function)"
    )


def text_of(job: Job) -> Path | None:
    """The file of Python that a job runs, if it runs one."""
    if job.kind is TargetKind.MODULE:
        return module_file(job.target, [str(Path.cwd()), *sys.path])
    return Path(job.target) if job.kind is TargetKind.SCRIPT else None


def module_job(name: str, args: Sequence[str]) -> Job:
    """A module that is run as `python -m` does."""
    if is_launcher(name):
        return _launched(list(args))
    if not all(part.isidentifier() for part in name.split(".")):
        raise UsageError(f"-m {name}: write a module's name, such as -m rl_zoo3.train")
    if module_file(name, [str(Path.cwd()), *sys.path]) is None:
        raise UsageError(
            f"there is no module {name} for {sys.executable}, or it cannot be run: install it "
            "there, or plan from the folder that it is in"
        )
    return Job(kind=TargetKind.MODULE, target=name, args=tuple(args))


def _command_job(words: list[str]) -> Job:
    """The job of a command line that starts a training in Python."""
    if not words:
        raise UsageError("say what to plan: a script (train.py), a spec (run.toml), -m MODULE")
    program = Path(words[0]).name
    if is_launcher(program):
        return _launched(words[1:])
    if words[0].endswith((".py", NOTEBOOK)):
        return job_of(words[0], words[1:])
    if not _PYTHON.fullmatch(program):
        raise UsageError(f"{words[0]!r} is no Python, and a plan runs nothing else: {_COMMAND}")
    rest = words[1:]
    while rest and rest[0].startswith("-") and rest[0] not in ("-m", "-c", "-"):
        rest = rest[2:] if rest[0] in _WITH_VALUE else rest[1:]
    if not rest or rest[0] in ("-c", "-") or (rest[0] == "-m" and len(rest) < 2):
        raise UsageError(f"{' '.join(words)} names no script and no module: {_COMMAND}")
    return module_job(rest[1], rest[2:]) if rest[0] == "-m" else job_of(rest[0], rest[1:])


def _launched(words: list[str]) -> Job:
    """The job of what a launcher starts on this machine."""
    found = launched(words, _COMMAND)
    name, args = found.program[0], found.program[1:]
    if found.command:
        job = _command_job(list(found.program))
    else:
        job = module_job(name, args) if found.module else job_of(name, args)
    return replace(job, ranks=found.ranks, notes=(*job.notes, found.note))


def _object_job(run: Any) -> Job:
    """Live objects go to the child pickled; text, so that the job stays one file."""
    try:
        import cloudpickle
    except ModuleNotFoundError:
        raise MissingExtra(
            "a TorchRun is sent to a child by cloudpickle, which is not installed: "
            "pip install 'memfit[torch]'"
        ) from None
    pickled = base64.b64encode(cloudpickle.dumps(run)).decode()
    return Job(kind=TargetKind.OBJECT, target=type(run.module).__name__, pickled=pickled)


def _check_notebook(path: Path) -> None:
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = any(cell["cell_type"] == "code" for cell in cells)
    except (OSError, ValueError, TypeError, KeyError):
        code = False
    if not code:
        raise UsageError(f"{path} is no Python notebook with cells of code: name one that is")


def _check_script(path: Path) -> None:
    """Refuse what cannot be a Python script; what is wrong inside one, Python says better."""
    if not os.access(path, os.R_OK):
        raise UsageError(f"{path} cannot be read: change its permissions, or name another script")
    if path.suffix in (".py", ".pyw"):
        return
    with suppress(SyntaxError, ValueError):
        compile(path.read_bytes(), path, "exec")
        if not path.suffix:
            return
    raise UsageError(
        f"{path} is no Python script: give one (train.py), a run spec (run.toml) or a factory "
        "(package.module:function)"
    )
