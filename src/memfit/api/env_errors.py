"""What a child that stepped an environment answers, where that is not what was wanted."""

from __future__ import annotations

import re
import signal
import sys

from memfit.errors import MemfitError, MissingExtra, NeverLearned, TargetFailed, UsageError
from memfit.measure.children.sandbox import Ended
from memfit.model.job import Status
from memfit.model.stepping_words import Moment

_AGAIN = "then profile again"
_WANTS = re.compile(r"TypeError: .* missing \d+ required .*arguments?: ")
# What Tk, X11, SDL, pyglet and GLFW say where there is no screen.
_NO_DISPLAY = (
    *("no display name and no $DISPLAY", "NoSuchDisplayException", "No available video device"),
    *('Cannot connect to "None"', "X11: The DISPLAY environment variable is missing"),
)


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
    last = answer.output.rstrip().rpartition("\n")[2]
    if "DependencyNotInstalled" in last:
        return TargetFailed(
            f"{target} needs a package that is not installed for {sys.executable}: the last line "
            f"above says which, {_AGAIN}",
            output=said,
        )
    if any(words in answer.output for words in _NO_DISPLAY):
        return TargetFailed(
            f"{target} needs a display, and there is none: make it without a window "
            "(--option render_mode=rgb_array, SDL_VIDEODRIVER=dummy), or profile under xvfb-run",
            output=said,
        )
    if last.startswith("ModuleNotFoundError"):
        what = f"the --policy of {target}" if answer.reason == Moment.POLICY else target
        return TargetFailed(
            f"{what} could not be imported: profile from the folder that its module is in, with "
            "the Python that has what it needs",
            output=said,
        )
    if answer.reason == Moment.MADE and _WANTS.search(last):
        return TargetFailed(
            f"{target} cannot be made without more arguments: the last line above says which; give "
            "each as --option NAME=VALUE",
            output=said,
        )
    when = answer.reason or "it was stepped"
    return TargetFailed(f"{target} raised while {when}: fix that, {_AGAIN}", output=said)


def _died(code: int | None) -> str:
    if code is None or code >= 0:
        return f"exit code {code}"
    names = {number.value: number.name for number in signal.Signals}
    return names.get(-code, f"signal {-code}")
