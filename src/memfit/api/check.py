"""`check`: findings of scripts as a linter gives them, of recordings, and of runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from memfit.errors import UsageError
from memfit.model import Checked, Finding, Severity
from memfit.sources.check_settings import CheckSettings, check_settings

_SPEC, _RECORDING, _NOTEBOOK = ".toml", ".db", ".ipynb"
Progress = Callable[[str], None]


def settings_for(
    targets: Sequence[str], select: Sequence[str] = (), ignore: Sequence[str] = ()
) -> CheckSettings:
    """The settings that hold for the first target; codes of a command line are known ones."""
    for word in (*select, *ignore):
        _check_code(word)
    found = check_settings(Path(targets[0]))
    for word in (*found.select, *found.ignore):
        _check_code(word, f"{found.path}: ")
    return found


def check(
    targets: Sequence[str],
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    exclude: Sequence[str] = (),
) -> Checked:
    """Findings of recordings, and of scripts and directories by their text: nothing is run."""
    from memfit.checks import UNREADABLE, check_source, wanted
    from memfit.measure.record.recording import is_recording
    from memfit.sources.python_files import python_files, text_of_file
    from memfit.syntax import Source

    started = time.monotonic()
    codes = wanted(select, ignore)
    findings: list[Finding] = []
    files = ignored = 0
    for target in targets:
        if Path(target).suffix == _NOTEBOOK:
            raise UsageError(
                f"{target} is a notebook, which check does not read: save it as a script "
                f"(jupyter nbconvert --to script {target}) and check that"
            )
        # A pipe is read once, as text: what looks into it first would take its beginning away.
        recorded = Path(target).is_file() and is_recording(Path(target))
        if recorded or Path(target).suffix == _RECORDING:
            files += 1
            findings += _of_recording(target, codes)
            continue
        for path in python_files(Path(target), exclude):
            files += 1
            try:
                found, left_out = check_source(Source(text_of_file(path), str(path)), codes)
            except SyntaxError as error:
                found, left_out = [_no_python(UNREADABLE, str(path), error)], 0
            except UsageError:
                if path == Path(target):
                    raise
                found, left_out = [_no_python(UNREADABLE, str(path), SyntaxError("no text"))], 0
            except (RecursionError, MemoryError):
                deep = SyntaxError("nested too deeply to be read")
                found, left_out = [_no_python(UNREADABLE, str(path), deep)], 0
            findings += found
            ignored += left_out
    return Checked(
        targets=tuple(targets),
        findings=tuple(findings),
        files=files,
        ignored=ignored,
        titles=titles({f.code for f in findings}),
        seconds=time.monotonic() - started,
    )


def check_run(
    target: str,
    *,
    args: Sequence[str] = (),
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    limit: int | None = None,
    timeout: float = 120.0,
    network: bool = False,
    progress: Progress | None = None,
) -> Checked:
    """Findings and advice of a run that is planned: a script's captured objects, or a spec.

    A script is also read.
    """
    from memfit.api.plan import plan
    from memfit.checks import wanted

    started = time.monotonic()
    codes = wanted(select, ignore)
    planned = plan(
        target,
        args=args,
        limit=limit,
        timeout=timeout,
        network=network,
        quick=True,
        all_findings=True,
        progress=progress,
    )
    read = None
    if Path(target).suffix == ".py":
        read = check([target], select=select, ignore=ignore)
    findings = [f for f in planned.findings if f.code in codes]
    told = {f.code for f in findings}
    # What the run itself shows, with its bytes, is not told again from the text.
    findings += [f for f in (read.findings if read else ()) if f.code not in told]
    return Checked(
        targets=(target,),
        findings=tuple(findings),
        files=read.files if read else 1,
        ignored=read.ignored if read else 0,
        advice=tuple(a for a in planned.advice if a.code in codes),
        notes=planned.notes,
        titles=titles({f.code for f in findings}),
        seconds=time.monotonic() - started,
    )


def is_run(target: str) -> bool:
    """Whether a target is no text of Python, so that only its run can be checked."""
    named = ":" in target and not Path(target).exists()
    return Path(target).suffix == _SPEC or named


def _of_recording(path: str, codes: Collection[str]) -> list[Finding]:
    from memfit.api.compare import recorded
    from memfit.checks import check_recording

    return check_recording(*recorded(path), path, codes)


def explain_code(code: str) -> object:
    """The page of one check."""
    from memfit.checks import all_checks
    from memfit.checks.page import page

    for one in all_checks():
        if code.upper() == one.CODE:
            return page(one)
    known = all_checks()
    raise UsageError(
        f"there is no check {code}: codes go from {known[0].CODE} to {known[-1].CODE}; "
        "docs/checks.md lists them"
    )


def titles(codes: Collection[str]) -> dict[str, str]:
    """What each of these codes is about, in a line."""
    from memfit.checks import UNREADABLE, all_checks
    from memfit.checks.page import page

    found = {one.CODE: page(one).title for one in all_checks() if one.CODE in codes}
    return found | ({UNREADABLE: "the file is no Python."} if UNREADABLE in codes else {})


def _no_python(code: str, path: str, error: SyntaxError) -> Finding:
    line, column = error.lineno or 1, max(error.offset or 1, 1)
    return Finding(
        code=code,
        severity=Severity.ERROR,
        message=f"this is no Python: {error.msg}",
        where=f"{path}:{line}:{column}",
        path=path,
        line=line,
        column=column,
        fix="correct the line, or leave the file out with exclude",
    )


def _check_code(word: str, where: str = "") -> None:
    from memfit.checks import all_checks

    if word != "ALL" and not any(one.CODE.startswith(word) for one in all_checks()):
        raise UsageError(
            f"{where}no check has a code that begins with {word!r}: write one such as MF203 or MF2"
        )


def reaches(checked: Checked, severity: str) -> bool:
    """Whether any finding is as bad as this, or worse."""
    return checked.reaches(Severity(severity))
