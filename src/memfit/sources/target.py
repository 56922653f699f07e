"""From a target to a job for the child: a script, a spec, a factory or a live object."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from memfit.errors import MissingExtra, UsageError
from memfit.model.job import Job, TargetKind

SPEC = ".toml"


def job_of(
    target: str | Path | Any, args: Sequence[str], knobs: Mapping[str, int] | None = None
) -> Job:
    """Tell a script from a factory, a spec and live objects; `knobs` are settings of a spec."""
    if not isinstance(target, (str, Path)):
        return _object_job(target)
    path, target = Path(target), str(target)
    if path.suffix == SPEC:
        from memfit.sources import spec

        facts = spec.load(path, knobs)
        notes = tuple(facts.pop("notes"))
        return Job(kind=TargetKind.SPEC, target=target, spec=facts, notes=notes)
    if os.path.isfile(path):  # noqa: PTH113  # a name may be too long
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
