"""The edit that makes fixes in a script's text: a copy or a diff, never the script itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from memfit.errors import UsageError
from memfit.model.job import Job
from memfit.model.optimized import TriedFix
from memfit.sources.patched_script import Patched, patched
from memfit.sources.python_files import text_of_file
from memfit.sources.target import text_of

_DIFFS = (".diff", ".patch")


def script_to_patch(job: Job, write: str | Path | None) -> Path | None:
    """The script's file, if there is one; refuse to write where nothing could be written."""
    script = text_of(job)
    if write is None:
        return script
    if script is None or not script.is_file():
        raise UsageError(
            f"--write {write}: {job.target} is no script whose text could be patched: leave "
            "--write out"
        )
    if Path(write).exists() and Path(write).samefile(script):
        raise UsageError(
            f"--write {write} is the script itself, which memfit does not edit: name another file"
        )
    return script


def patched_with(script: Path | None, chosen: TriedFix | None) -> Patched | None:
    if script is None or chosen is None:
        return None
    try:
        return patched(text_of_file(script).decode(), chosen.changes)
    except (SyntaxError, ValueError):
        return None


def write_patch(made: Patched | None, script: Path | None, write: str | Path | None) -> str:
    """Write the copy, or the diff, that was asked for; the name of what was written."""
    if write is None or made is None or script is None or made.text == made.before:
        return ""
    path = Path(write)
    text = made.diff(script.name) if path.suffix in _DIFFS else made.text
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}. Choose another file") from error
    return str(path)


def left_over(made: Patched | None, *, written: bool) -> Iterator[str]:
    """What of the best set has to be made by a person."""
    if made is not None and made.left:
        yield f"not in the edit, since the text gives it in another way: {'; '.join(made.left)}"
    if written and (made is None or made.text == made.before):
        yield "nothing was written: there is no fix to make in the text"
