"""What a child that stepped an environment answers, where that is not what was wanted."""

from __future__ import annotations

import signal
import sys

from memfit.errors import MemfitError, MissingExtra, NeverLearned, TargetFailed, UsageError
from memfit.measure.children.sandbox import Ended
from memfit.model.job import Status

_AGAIN = "then profile again"


def error_of(ended: Ended, target: str) -> MemfitError:
    """The error that an answer's status stands for."""
    answer = ended.answer
    said = "\n".join(text for text in (ended.output.rstrip(), answer.output) if text)
    match answer.status:
        case Status.BAD_SPEC:
            return UsageError(answer.reason, output=ended.output)
        case Status.UNSUPPORTED:
            return TargetFailed(f"{target}: {answer.reason}", output=ended.output)
        case Status.MISSING_EXTRA:
            return MissingExtra(
                f"{target} needs {answer.library}, which is not installed for {sys.executable}: "
                f"pip install 'memfit[{answer.extra}]'"
            )
        case Status.TIMED_OUT:
            return NeverLearned(
                f"{target} was not done within {answer.reason}, and was ended: a step or a reset "
                "that never comes back is a fault of the environment; one that is slow needs fewer "
                "--frames, or more time with --timeout SECONDS",
                output=ended.output,
            )
        case Status.OVER_LIMIT:
            return TargetFailed(
                f"{target} took more than {answer.reason} while it was stepped, and was ended: "
                "profile it with fewer --frames or --envs, or on a larger machine",
                output=ended.output,
            )
        case Status.DIED:
            return TargetFailed(
                f"{target} ended its own process while it was stepped ({_died(answer.exit_code)}): "
                f"have it raise an exception instead, {_AGAIN}",
                output=said,
            )
    if "EOFError: EOF when reading a line" in answer.output:
        return TargetFailed(
            f"{target} reads standard input, and a profile gives it none: let it take its answers "
            f"as arguments, {_AGAIN}",
            output=said,
        )
    if "ModuleNotFoundError" in answer.output:
        return TargetFailed(
            f"{target} could not be imported: profile from the folder that its module is in, with "
            "the Python that has what it needs",
            output=said,
        )
    return TargetFailed(f"{target} raised while it was stepped: fix that, {_AGAIN}", output=said)


def _died(code: int | None) -> str:
    if code is None or code >= 0:
        return f"exit code {code}"
    names = {number.value: number.name for number in signal.Signals}
    return names.get(-code, f"signal {-code}")
