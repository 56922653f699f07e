"""What a child's answer means to the person who asked, where it is not the one that was wanted."""

from __future__ import annotations

import signal
import sys

from memfit.errors import (
    MemfitError,
    MissingExtra,
    NeverLearned,
    SpecError,
    TargetFailed,
    Unsupported,
)
from memfit.libraries import all_libraries
from memfit.measure.children.sandbox import Ended
from memfit.model.confinement import Confinement
from memfit.model.job import Answer, Status

_NO_NETWORK = (
    "Network is unreachable",
    "Name or service not known",
    "Temporary failure in name resolution",
    "ConnectionRefusedError",
)
_OR_SPEC = "or describe the run in a spec (run.toml)"


def error_of(ended: Ended, target: str) -> MemfitError:
    """The error that an answer's status stands for."""
    answer, output = ended.answer, ended.output
    said = "\n".join(text for text in (output.rstrip(), answer.output) if text)
    match answer.status:
        case Status.NEVER_LEARNED:
            return _never(target, output)
        case Status.TIMED_OUT:
            return NeverLearned(
                f"the target did not begin to learn within {answer.reason}: "
                "give it more time with --timeout SECONDS, or describe the run in a spec",
                output=output,
            )
        case Status.BAD_SPEC:
            return SpecError(
                f"{target}: {answer.reason}. Fix that part of the spec, then plan again",
                output=output,
            )
        case Status.UNSUPPORTED:
            return Unsupported(f"{target}: {answer.reason}", output=output)
        case Status.MISSING_EXTRA:
            return MissingExtra(
                f"{target} needs {answer.library}, which is not installed for {sys.executable}: "
                f"pip install 'memfit[{answer.extra}]'"
            )
        case Status.OVER_LIMIT:
            return NeverLearned(
                f"{target} used more than {answer.reason} before it began to learn and was ended: "
                f"plan it on a larger machine, {_OR_SPEC}",
                output=output,
            )
        case Status.SURVEY_FAILED:
            return Unsupported(
                f"memfit could not survey {target}, though the script itself did nothing wrong: "
                f"report the traceback above, {_OR_SPEC}",
                output=said,
            )
        case Status.DIED if answer.exit_code == 0:
            return _never(target, output)
    return _failed(answer, target, said)


def _never(target: str, output: str) -> NeverLearned:
    calls = " or ".join(library.begins for library in all_libraries() if library.begins)
    return NeverLearned(
        f"{target} ended without calling {calls}, which is what a plan stops at: "
        f"check the script's arguments, {_OR_SPEC}",
        output=output,
    )


def _failed(answer: Answer, target: str, said: str) -> MemfitError:
    if "EOFError: EOF when reading a line" in answer.output:
        return NeverLearned(
            f"{target} reads standard input, and a plan gives it none: "
            "pass its answers as arguments after --",
            output=said,
        )
    todo = "fix the error above, then plan again"
    shielded = answer.confinement is not Confinement.NAMESPACES
    if shielded and "PermissionError" in answer.output:
        todo = "a plan lets it change no file; if that is why, let it write after learn()"
    if any(sign in answer.output for sign in _NO_NETWORK):
        todo = "a plan has no network; if that is why, allow it with --network"
    how = _died(answer.exit_code) if answer.status is Status.DIED else "failed"
    return TargetFailed(f"{target} {how} before it began to learn: {todo}", output=said)


def _died(code: int | None) -> str:
    if code is None or code >= 0:
        return f"ended with exit code {code}"
    names = {number.value: number.name for number in signal.Signals}
    return f"was killed by {names.get(-code, f'signal {-code}')}"
