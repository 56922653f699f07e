"""Replay sequences of allocations in a fork made before anything else disturbed malloc.

A recording leaves much free memory behind in malloc, which a replay would use up before it grows.
So a process is forked while malloc is as the run's own process has it; it waits until the sequence
is known, and then forks again for each replay.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any, BinaryIO

from memfit.measure.replay import Growth, Step, replay_often


class Waiting:
    """This process as it is now; it replays `steps(**told)` whenever it is told to."""

    def __init__(self, steps: Callable[..., Iterable[Step]]) -> None:
        self._steps = steps
        told_reader, told_writer = os.pipe()
        found_reader, found_writer = os.pipe()
        # Collecting garbage would write to every object, and so give each process its own copy.
        gc.freeze()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                gc.disable()
                os.close(told_writer)
                os.close(found_reader)
                with os.fdopen(told_reader, "rb") as told, os.fdopen(found_writer, "wb") as found:
                    self._serve(told, found)
            finally:
                os._exit(0)
        os.close(told_reader)
        os.close(found_writer)
        self._told = os.fdopen(told_writer, "wb")
        self._found = os.fdopen(found_reader, "rb")

    def replay(self, told: Mapping[str, Any], seeds: int) -> dict[str, Growth]:
        """Growth at each moment, over so many draws."""
        pickle.dump((dict(told), seeds), self._told)
        self._told.flush()
        answer = json.loads(self._found.readline())
        return {moment: Growth(**growth) for moment, growth in answer.items()}

    def dismiss(self) -> None:
        """End the fork."""
        self._told.close()
        self._found.close()
        os.waitpid(self._pid, 0)

    def _serve(self, told: BinaryIO, found: BinaryIO) -> None:
        while told.peek(1):  # type: ignore[attr-defined]
            arguments, seeds = pickle.load(told)
            growth = replay_often(partial(self._steps, **arguments), seeds)
            answer = {moment: asdict(one) for moment, one in growth.items()}
            found.write(json.dumps(answer).encode() + b"\n")
            found.flush()
