"""`run`: any command, recorded from outside, with a guard and with the inside view ready."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from memfit.errors import UsageError
from memfit.model import Forecast, Ledger, Limit, Reading, Trace

Live = Callable[[Reading, Forecast | None], None]


def run(
    command: Sequence[str],
    *,
    limit: int | None = None,
    record: Path | str | None = None,
    grace: float = 10.0,
    say: Callable[[str], None] = lambda text: None,
    live: Live | None = None,
) -> Trace:
    """Run a command, record the memory of its tree, and return the recording.

    Standard input and output are the command's, signals are passed on to it, and it ends with this
    process. `exit_code` of the answer is the command's own, 128 + n where signal n has ended it.
    With a limit, the command is asked to end when it goes above that, and made to end when it goes
    on or takes longer than `grace` seconds. The recording is kept where `record` says, and nowhere
    where it is None.
    """
    from memfit.analyses.forecast import forecast
    from memfit.measure.children import launch
    from memfit.measure.record.recorder import Recorder, Tools
    from memfit.measure.record.recording import Recording, load, scratch

    with scratch(record) as path:
        recording = Recording(path)
        tools = Tools(ledger=_ledger, forecast=forecast, say=say, live=live)
        recorder = Recorder(recording, command, Limit.given(limit), tools, grace=grace)
        try:
            launch.run(command, recorder, recording=path)
        except UsageError:  # it could not be started: there is nothing to keep
            recording.close()
            path.unlink(missing_ok=True)
            raise
        finally:
            recording.close()
        return load(path)


def _ledger(pid: int) -> Ledger:
    from memfit.analyses.tree_ledger import tree_ledger
    from memfit.measure.live.process_tree import read_tree

    return tree_ledger(read_tree(pid))


def default_recording(command: Sequence[str]) -> Path:
    """Where a recording goes that nobody gave a place: beside where the command is started."""
    script = next((w for w in command[1:] if w.endswith(".py")), command[0] if command else "run")
    return Path(f"memfit-{Path(script).stem}.{os.getpid()}.db")
