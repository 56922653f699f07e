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
    "Failed to resolve",
    "Could not resolve host",
    "LocalEntryNotFoundError",
)
_CREDENTIALS = "it needs credentials: give them in its environment, or turn its logging off"
_DISPLAY = "it needs a display, and a plan has none: leave render_mode out"
_CARD = (
    "it trains on a card, and there is none here: let it train on the CPU, by an argument after "
    "-- if it has one"
)
# What a script may need that is not there, by what its traceback says.
_NEEDS = {
    "FileNotFoundError": (
        "it needs a file that is not there: plan from the folder in which it runs, or name the "
        "file in its arguments after --"
    ),
    "No available video device": (
        "it needs a display, and a plan has none: leave render_mode out, or set "
        "SDL_VIDEODRIVER=dummy"
    ),
    "x11 not available": _DISPLAY,
    "cannot connect to X server": _DISPLAY,
    "NoSuchDisplayException": _DISPLAY,
    "no $DISPLAY": _DISPLAY,
    "could not connect to display": _DISPLAY,
    "Unable to open display": _DISPLAY,
    "api_key": _CREDENTIALS,
    "API_KEY": _CREDENTIALS,
    "_TOKEN'": _CREDENTIALS,
    "Unable to locate credentials": _CREDENTIALS,
    "401 Client Error": _CREDENTIALS,
    "Found no NVIDIA driver": _CARD,
    "Torch not compiled with CUDA enabled": _CARD,
    "ModuleNotFoundError": (
        f"it needs a package that is not there for {sys.executable}: install it, or plan with the "
        "Python that it runs with"
    ),
}
_OR_SPEC = "or describe the run in a spec (run.toml)"


def error_of(ended: Ended, target: str) -> MemfitError:
    """The error that an answer's status stands for."""
    answer, output = ended.answer, ended.output
    said = "\n".join(text for text in (output.rstrip(), answer.output) if text)
    match answer.status:
        case Status.NEVER_LEARNED:
            return _never(answer, target, output)
        case Status.TIMED_OUT if answer.progress is not None and answer.progress.updates:
            return NeverLearned(
                f"the target learned, and was not done with a trial within {answer.reason}"
                f"{_how_far(answer)}: give it more time with --timeout SECONDS, or the machine less"
                " to do",
                output=output,
            )
        case Status.TIMED_OUT:
            return NeverLearned(
                f"the target did not begin to learn within {answer.reason}{_how_far(answer)}: "
                f"give it more time with --timeout SECONDS{_sooner(answer)}, {_OR_SPEC}",
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
                f"{target} used more than {answer.reason} before it began to learn and was ended"
                f"{_how_far(answer)}: "
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
            return _never(answer, target, output)
    return _failed(answer, target, said)


def _never(answer: Answer, target: str, output: str) -> NeverLearned:
    calls = " or ".join(library.begins for library in all_libraries() if library.begins)
    return NeverLearned(
        f"{target} ended without calling {calls}, and without a step of an optimizer of torch, a "
        f"gradient of JAX or a fit(), which is what a plan looks for{_how_far(answer)}: check the "
        f"script's arguments, {_OR_SPEC}",
        output=output,
    )


def _how_far(answer: Answer) -> str:
    """How far a script came, where that is known."""
    came = answer.progress
    if came is None or not came.env_steps + came.updates:
        return "; no env was stepped" if came is not None else ""
    said = f"; it had made {came.env_steps:,} env step{'' if came.env_steps == 1 else 's'}"
    return f"{said} and {came.updates:,} updates" if came.updates else f"{said}, and no update"


def _sooner(answer: Answer) -> str:
    """What may let a script learn sooner that has stepped its env all the time."""
    came = answer.progress
    if came is None or not came.env_steps or came.updates:
        return ""
    return ", let it update sooner by its own settings (--set learning_starts=1000, if it has that)"


def _failed(answer: Answer, target: str, said: str) -> MemfitError:
    if "EOFError: EOF when reading a line" in answer.output:
        return NeverLearned(
            f"{target} reads standard input, and a plan gives it none: "
            "pass its answers as arguments after --",
            output=said,
        )
    todo = "fix the error above, then plan again"
    if "usage:" in said and "error:" in said:
        todo = (
            "give it the arguments that it needs after --, as in: memfit plan train.py -- --seed 1"
        )
    shielded = answer.confinement is not Confinement.NAMESPACES
    if shielded and "PermissionError" in answer.output:
        todo = "a plan lets it change no file; if that is why, let it write after learn()"
    if any(sign in answer.output for sign in _NO_NETWORK):
        todo = "a plan has no network; if that is why, allow it with --network"
    todo = next((hint for sign, hint in _NEEDS.items() if sign in answer.output), todo)
    how = _died(answer.exit_code) if answer.status is Status.DIED else "failed"
    when = "before it began to learn"
    came = answer.progress
    if came is not None and came.updates:
        when = f"after {came.updates:,} updates"
    elif came is not None:
        when += f", after {came.env_steps:,} env steps" if came.env_steps else " or stepped an env"
    return TargetFailed(f"{target} {how} {when}: {todo}", output=said)


def _died(code: int | None) -> str:
    if code is None or code >= 0:
        return f"ended with exit code {code}"
    names = {number.value: number.name for number in signal.Signals}
    return f"was killed by {names.get(-code, f'signal {-code}')}"
