"""One call of an Optuna objective in a process of its own: `python -m memfit.inside.objective JOB`.

JOB is JSON: `objective` ("module:function", or "/path/file.py:function"), `paths` (where its module
is found), `fixed` (values of parameters; the place of a choice) and `channel`, the number of a
socket to who runs the study. What the trial suggests, reports and notes goes there as lines of
JSON, each answered by one; the last line says how the objective ended. Without a channel it is
called to be planned: what is not fixed has a middle value, and each parameter is printed. With a
`space`, it takes a configuration as a dictionary in place of a trial, as functions of Tune do.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import runpy
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

IN_TRIAL = "MEMFIT_TRIAL"  # set in the process of a trial, where no study may begin
PARAMETER = "memfit-parameter: "  # what a line begins with that tells one
OUT_OF_MEMORY = (
    *("allocate memory", "not enough memory", "bad_alloc", "Unable to allocate"),
    "out of memory",
)
_PLAIN = (type(None), bool, int, float, str)
_LONGEST_TRACEBACK = 8000

Ask = Callable[[str, dict[str, Any]], Any]


class Trial:
    """What an objective gets for its trial; each call is answered by the study's own trial."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._params: dict[str, Any] = {}

    def suggest_int(
        self, name: str, low: int, high: int, *, step: int = 1, log: bool = False
    ) -> int:
        """A whole number of a range."""
        return int(self._suggest(name, kind="int", low=low, high=high, step=step, log=log))

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        """A number of a range."""
        return float(self._suggest(name, kind="float", low=low, high=high, step=step, log=log))

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        """One of some values."""
        told = [choice if isinstance(choice, _PLAIN) else repr(choice) for choice in choices]
        at = self._ask("suggest", {"name": name, "kind": "categorical", "choices": told})
        self._params[name] = choices[at]
        return choices[at]

    def _suggest(self, name: str, **distribution: Any) -> Any:
        value = self._ask("suggest", {"name": name, **distribution})
        self._params[name] = value
        return value

    def report(self, value: float, step: int) -> None:
        """How good it is so far."""
        self._ask("report", {"value": float(value), "step": int(step)})

    def should_prune(self) -> bool:
        """Whether the study gives it up."""
        return bool(self._ask("should_prune", {}))

    def set_user_attr(self, key: str, value: Any) -> None:
        """Note something with the trial; the value must be plain."""
        self._ask("set_user_attr", {"key": key, "value": value})

    @property
    def params(self) -> dict[str, Any]:
        """What has been suggested."""
        return dict(self._params)

    @property
    def number(self) -> int:
        """The trial's place in the study."""
        return int(self._ask("number", {}))

    @property
    def user_attrs(self) -> dict[str, Any]:
        """What has been noted."""
        return dict(self._ask("user_attrs", {}))


class Channel:
    """The socket to the study: one question at a time."""

    def __init__(self, number: int) -> None:
        self._socket = socket.socket(fileno=number)
        self._socket.set_inheritable(False)
        self._lines = self._socket.makefile("rb")
        self._lock = threading.Lock()
        self._owner = os.getpid()

    def ask(self, call: str, given: dict[str, Any]) -> Any:
        """What the study's trial answers, or the error that it raises."""
        if os.getpid() != self._owner:
            raise RuntimeError("a trial answers only the process that its objective runs in")
        with self._lock:
            self.tell(call=call, given=given)
            line = self._lines.readline()
        if not line:
            sys.exit("the study has ended")
        answer = json.loads(line)
        if "error" in answer:
            kind = {"ValueError": ValueError, "TypeError": TypeError}.get(
                answer["kind"], RuntimeError
            )
            raise kind(answer["error"])
        return answer["value"]

    def tell(self, **fields: Any) -> None:
        """One line."""
        self._socket.sendall(json.dumps(fields).encode() + b"\n")


def planned(fixed: dict[str, Any]) -> Ask:
    """Answers for a trial that is only planned."""

    def ask(call: str, given: dict[str, Any]) -> Any:
        match call:
            case "suggest":
                value = fixed.get(given["name"], middle(given))
                os.write(1, f"\n{PARAMETER}{json.dumps({**given, 'value': value})}\n".encode())
                return value
            case "user_attrs":
                return {}
            case "number":
                return 0
            case _:
                return False

    return ask


def middle(distribution: dict[str, Any]) -> Any:
    """A value from the middle of what a parameter may be, the place of a choice."""
    if distribution["kind"] == "categorical":
        choices = distribution["choices"]
        numbers = all(type(choice) in (int, float) for choice in choices)
        order = sorted(range(len(choices)), key=choices.__getitem__) if numbers else [0]
        return order[len(order) // 2]
    low, high, step = distribution["low"], distribution["high"], distribution["step"]
    value = math.sqrt(low * high) if low > 0 else (low + high) / 2
    if step is not None:
        value = low + round((value - low) / step) * step
    return int(value) if distribution["kind"] == "int" else value


def configuration(trial: Trial, space: dict[str, Any]) -> dict[str, Any]:
    """A value for each name of a space; names with a slash stand in dictionaries."""
    found: dict[str, Any] = {}
    values = dict(space["constant"])
    for name, told in space["varied"].items():
        if told["kind"] == "categorical":
            values[name] = trial.suggest_categorical(name, told["choices"])
        else:
            given = {key: told[key] for key in ("low", "high", "step", "log")}
            suggest = trial.suggest_int if told["kind"] == "int" else trial.suggest_float
            values[name] = suggest(name, **given)
    for name, value in values.items():
        *above, last = name.split("/")
        place = found
        for part in above:
            place = place.setdefault(part, {})
        place[last] = value
    return found


def objective_of(name: str) -> Callable[[Trial], Any]:
    """The function; a program's file is loaded as something else than the main program."""
    module, _, function = name.rpartition(":")
    if module.endswith(".py"):
        sys.path.insert(0, os.path.dirname(module))  # noqa: PTH120 - as Python does for a script
        found: Callable[[Trial], Any] = runpy.run_path(module, run_name="__memfit_trial__")[
            function
        ]
        return found
    found = importlib.import_module(module)  # type: ignore[assignment]
    for part in function.split("."):
        found = getattr(found, part)
    return found


def main() -> int:
    """Call the objective, and tell how it ended."""
    job = json.loads(sys.argv[1])
    sys.argv[1:] = []
    os.environ[IN_TRIAL] = "1"
    sys.path += [path for path in job["paths"] if path not in sys.path]
    if job.get("channel") is None:
        trial = Trial(planned(job["fixed"]))
        space = job.get("space")
        given: Any = trial if space is None else configuration(trial, space)
        objective_of(job["objective"])(given)
        return 0
    channel = Channel(job["channel"])
    try:
        value = objective_of(job["objective"])(Trial(channel.ask))
        channel.tell(value=_plain(value))
    except Exception as error:  # noqa: BLE001 - whatever the objective raises is its answer
        _tell_failure(channel, error)
    return 0


def _plain(value: Any) -> Any:
    """A number, or several; what is none is told as text, for the study to refuse."""
    with suppress(TypeError, ValueError):
        return float(value)
    with suppress(TypeError, ValueError):
        return [float(one) for one in value]
    return repr(value)


def _tell_failure(channel: Channel, error: Exception) -> None:
    kinds = [kind.__name__ for kind in type(error).__mro__]
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if "TrialPruned" in kinds:
        channel.tell(pruned=str(error))
    elif "MemoryError" in kinds or any(said in str(error) for said in OUT_OF_MEMORY):
        channel.tell(memory=text)
    else:
        told = "".join(traceback.format_exception(error))
        sys.stderr.write(told)
        channel.tell(failed=text, traceback=told[-_LONGEST_TRACEBACK:])


if __name__ == "__main__":
    sys.exit(main())
