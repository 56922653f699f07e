"""One trial in a process of its own: recorded, held to its share, and answered while it runs."""

from __future__ import annotations

import json
import re
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna

from memfit import run
from memfit.errors import UsageError
from memfit.inside.objective import OUT_OF_MEMORY
from memfit.integrations.surveys import CHILD, child_job
from memfit.measure.kernel import proc
from memfit.model import EventKind, Reading, RunControl, Trace
from memfit.units import format_bytes

_GRACE = 1.0  # seconds that a trial over its share has to end by itself
_ALONE_SECONDS = 2.0  # between two looks at what it shares with others
_TAIL = 65536
# exec, so that no shell stands between; where the kernel must end something, it ends a trial before
# the study; threads that wait for each other sleep, since others need the processors.
_SHELL = """\
echo 500 2>/dev/null >/proc/self/oom_score_adj
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-PASSIVE}"
exec "$@" >"$0" 2>&1 </dev/null
"""
_LAST_WORDS = 300


@dataclass(kw_only=True)
class TrialEnd:
    """How a trial ended; one of `value`, `pruned`, `memory` and `failed` says it.

    `outside` is what its peak lacks because other processes map the same libraries, `files` what
    it mapped of these.
    """

    peak_bytes: int = 0
    outside: int = 0
    files: int = 0
    value: Any = None
    pruned: str | None = None
    memory: str = ""
    over_share: str = ""
    failed: str = ""
    told: str = ""  # the traceback


class TrialProcess:
    """A trial's command, run once by `to_its_end`, in the thread of its caller."""

    def __init__(
        self,
        trial: optuna.Trial,
        *,
        share: int,
        recording: Path,
        printed: Path,
        noted: Callable[[str, str], None],
        stopped: Callable[[], bool],
    ) -> None:
        self.trial = trial
        self.share = share
        self.recording = recording
        self.printed = printed
        self.control = RunControl()
        self.end = TrialEnd()
        self._noted, self._stopped = noted, stopped
        self._next_look = 0.0
        self._over = False

    def objective(self, objective: str) -> TrialEnd:
        """Call an objective, and answer what it asks of its trial."""
        here, there = socket.socketpair()
        job = child_job(objective, channel=there.fileno())
        server = threading.Thread(target=self._serve, args=(here,), daemon=True)
        server.start()
        try:
            self._run([sys.executable, "-m", CHILD, job], there.detach())
        finally:
            self._over = True
            server.join()
            here.close()
        return self.end

    def command(self, words: Sequence[str], value: re.Pattern[str]) -> TrialEnd:
        """Run a command; the last match in what it prints is the trial's value."""
        code = self._run(words).exit_code
        text = self._tail()
        found = value.findall(text)
        if found and not code:
            last = found[-1] if isinstance(found[-1], str) else found[-1][-1]
            with suppress(ValueError):
                self.end.value = float(last)
        if self.end.value is None and any(said in text for said in ("MemoryError", *OUT_OF_MEMORY)):
            self.end.memory = self.end.memory or _last_line(text)
        elif self.end.value is None and not code:
            self.end.failed = f"it printed nothing that {value.pattern!r} finds a number in"
        return self.end

    def _run(self, words: Sequence[str], *descriptors: int) -> Trace:
        trace = run(
            ["/bin/sh", "-c", _SHELL, str(self.printed), *words],
            limit=self.share,
            record=self.recording,
            force=True,
            grace=_GRACE,
            live=self._look,
            descriptors=descriptors,
            control=self.control,
            holders=False,
        )
        self._judge(trace)
        return trace

    def _judge(self, trace: Trace) -> None:
        end, code = self.end, trace.exit_code or 0
        end.peak_bytes = (trace.peak.bytes if trace.peak else 0) + end.outside
        events = {event.kind: event for event in trace.events}
        if self.control.reason:
            end.failed = self.control.reason
        elif EventKind.TERMINATED in events:
            held = format_bytes(events[EventKind.TERMINATED].bytes)
            end.over_share = f"it held {held}, more than its share of {format_bytes(self.share)}"
        elif EventKind.OUT_OF_MEMORY in events:
            end.memory = events[EventKind.OUT_OF_MEMORY].text
        elif code == 128 + signal.SIGKILL:
            end.memory = "it was killed (SIGKILL), as the kernel does where memory is short"
        elif code and not end.failed:
            last = _last_line(self._tail())
            end.failed = f"it ended with exit code {code}" + (f": {last}" if last else "")

    def _look(self, reading: Reading, forecast: object) -> None:
        if self._stopped() and not self.control.reason:
            self.control.end("the study was stopped")
        now = time.monotonic()
        if now < self._next_look or not self.control.pid:
            return
        found = proc.tree_memory(self.control.pid)
        self.end.outside = max(self.end.outside, found.outside)
        if found.main is not None:
            self.end.files = max(self.end.files, found.main.files)
        self._next_look = now + _ALONE_SECONDS

    def _tail(self) -> str:
        with suppress(OSError), open(self.printed, "rb") as file:
            file.seek(max(0, file.seek(0, 2) - _TAIL))
            return file.read().decode(errors="replace")
        return ""

    # -- what the objective asks -----------------------------------------------------------------

    def _serve(self, channel: socket.socket) -> None:
        """Answer until the process has ended and all that it said was heard."""
        unread = b""
        with suppress(OSError):
            while True:
                heard, _, _ = select.select([channel], [], [], 0.1)
                if not heard:
                    if self._over:
                        return
                    continue
                chunk = channel.recv(65536)
                if not chunk:
                    return
                *lines, unread = (unread + chunk).split(b"\n")
                for line in lines:
                    answer = self._answer(json.loads(line))
                    if answer is not None:
                        channel.sendall(json.dumps(answer).encode() + b"\n")

    def _answer(self, said: Mapping[str, Any]) -> dict[str, Any] | None:
        if "call" not in said:
            self._ended(said)
            return None
        try:
            return {"value": self._called(said["call"], said["given"])}
        except Exception as error:  # noqa: BLE001 - the objective gets what its trial raises
            return {"error": str(error), "kind": type(error).__name__}

    def _called(self, call: str, given: dict[str, Any]) -> Any:
        match call:
            case "suggest":
                return self._suggested(**given)
            case "report":
                self.trial.report(**given)
            case "should_prune":
                return self.trial.should_prune()
            case "set_user_attr":
                self.trial.set_user_attr(**given)
            case "number":
                return self.trial.number
            case "user_attrs":
                return self.trial.user_attrs
        return None

    def _suggested(self, name: str, kind: str, **given: Any) -> Any:
        new = name not in self.trial.params
        value = suggested(self.trial, name, kind, **given)
        if new:
            self._noted(name, kind)
        return given["choices"].index(value) if kind == "categorical" else value

    def _ended(self, said: Mapping[str, Any]) -> None:
        if "value" in said:
            self.end.value = said["value"]
        elif "pruned" in said:
            self.end.pruned = said["pruned"] or "by its objective"
        elif "memory" in said:
            self.end.memory = said["memory"]
        else:
            self.end.failed, self.end.told = said["failed"], said["traceback"]


def suggested(trial: optuna.Trial, name: str, kind: str, **given: Any) -> Any:
    """What the study's own trial suggests for a parameter."""
    match kind:
        case "int":
            return trial.suggest_int(name, **given)
        case "float":
            return trial.suggest_float(name, **given)
        case "categorical":
            return trial.suggest_categorical(name, given["choices"])
    raise UsageError(f"{name} is of a kind that is not known: {kind}. Use int, float or choices")


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:_LAST_WORDS] if lines else ""
