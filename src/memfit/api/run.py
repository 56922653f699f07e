"""`run`: any command, recorded from outside, with a guard and with the inside view ready."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from memfit.errors import UsageError
from memfit.measure.kernel.quiet_thread import quiet_thread
from memfit.model import Forecast, Ledger, Limit, Reading, RunControl, Trace

if TYPE_CHECKING:
    from memfit.measure.record.recorder import Recorder

__all__ = ["Live", "default_recording", "quiet_thread", "run", "terminal_in_use"]
Live = Callable[[Reading, Forecast | None], None]


def run(
    command: Sequence[str],
    *,
    limit: int | None = None,
    record: Path | str | None = None,
    force: bool = False,
    grace: float = 10.0,
    say: Callable[[str], None] = lambda text: None,
    live: Live | None = None,
    descriptors: Sequence[int] = (),
    control: RunControl | None = None,
    holders: bool = True,
) -> Trace:
    """Run a command, record the memory of its tree, and return the recording.

    Standard input and output are the command's, and signals are passed on to it. `exit_code` of the
    answer is the command's own, 128 + n where signal n has ended it. With a limit, the command and
    all that it started are asked to end when they go above that, and made to end when they go on or
    take longer than `grace` seconds. The recording is kept where `record` says, and nowhere where
    it is None; with `force`, one that is there already is replaced. Once the command runs, nothing
    that fails here ends it: the recording does.
    `descriptors` beyond the three streams are given away to the command, under their numbers, and
    closed here. Where this runs in a thread, `control` lets others end the command. Without
    `holders`, no process of memfit's own looks now and then at who holds the memory.
    """
    from memfit.analyses.forecast import forecast, verdict
    from memfit.measure.children import launch
    from memfit.measure.record.holder_looks import HolderLooks
    from memfit.measure.record.limit_guard import NET
    from memfit.measure.record.recorder import Recorder, Tools
    from memfit.measure.record.recording import remove, scratch
    from memfit.measure.record.recording_thread import RecordingThread

    with scratch(record, force=force) as path:
        recording = RecordingThread(path, say)
        if recording.failed:
            raise UsageError(recording.failed)
        tools = Tools(
            ledger=_ledger,
            forecast=forecast,
            verdict=verdict,
            say=say,
            live=live,
            looks=HolderLooks() if holders else None,
            control=control,
        )
        recorder = Recorder(recording, command, Limit.given(limit), tools, grace=grace)
        net = None if limit is None else int(limit * NET)
        try:
            launch.run(command, recorder, recording=path, net=net, descriptors=descriptors)
        except UsageError:  # it could not be started: there is nothing to keep
            recording.close()
            remove(path)
            raise
        finally:
            recording.close()
        return _kept(recorder, say)


def _kept(recorder: Recorder, say: Callable[[str], None]) -> Trace:
    """The recording, with what the run itself has told; what was seen where that is lost."""
    if recorder.recording.failed:
        return recorder.trace
    try:
        from memfit.measure.record.recording_reader import load

        return load(recorder.recording.path)
    except Exception:  # noqa: BLE001  # removed, locked again, no descriptor: the exit code counts
        why = "cannot be read any more"
        with suppress(Exception):  # a caller's own function
            say(f"{recorder.recording.path} {why}: this is what was seen")
        return replace(recorder.trace, cut=why)


def _ledger(pids: Sequence[int]) -> Ledger:
    from memfit.analyses.tree_ledger import tree_ledger
    from memfit.measure.live.process_tree import read_processes

    return tree_ledger(read_processes(pids))


def terminal_in_use() -> bool:
    """Whether a command that runs here has a terminal open, to read from it or to write on it.

    One that just ends has closed it already, and what it wrote last may be no whole line.
    """
    from memfit.measure.kernel import proc

    keepers = proc.children(os.getpid())
    below = [pid for keeper in keepers for pid in proc.descendants(keeper)]
    return any(map(proc.on_terminal, below)) or not any(map(proc.resident, below))


def default_recording(command: Sequence[str]) -> Path:
    """Where a recording goes that nobody gave a place: beside where the command is started."""
    script = next((w for w in command[1:] if w.endswith(".py")), command[0] if command else "run")
    return Path(f"memfit-{Path(script).stem}.{os.getpid()}.db")
