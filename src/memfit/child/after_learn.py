"""Watches the rest of a script, once every learn() has returned untrained, for a bounded time."""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from types import FrameType

from memfit.child.held_frames import held_frames
from memfit.measure.kernel import proc
from memfit.measure.kernel.proc import PeakMeter
from memfit.measure.kernel.quiet_thread import quiet_thread
from memfit.measure.survey.surveyor import WARM_SAMPLES
from memfit.model import AfterEnd, AfterReading, HeldFrames
from memfit.model.training import Driven, Training, Work, no_mark

_LOOK_SECONDS = 0.03
_TREE_SECONDS = 0.3  # between two looks at all processes
_STEP = 2**20  # a new high is one by this much
# Pictures are looked for when the process has grown by so much, then each time by half as much
# again; more of them than this tell nothing new where it is known how many there will be.
_LEAST_GROWTH, _MORE_GROWTH = 8 * 2**20, 1.5
_ENOUGH = 2**30


class AfterLearn:
    """What a script's tree rises by after learn(); `finish` is called from a thread of its own."""

    def __init__(
        self, script: str, seconds: float, finish: Callable[[AfterReading], object]
    ) -> None:
        self.script = script
        self.seconds = seconds
        self.finish = finish
        self.meter = PeakMeter()
        self.main = threading.get_ident()
        self.lock = threading.Lock()
        self.begun = False
        self._highest: AfterReading | None = None
        self._model: weakref.ref[object] = weakref.ref(self)

    # -- where learn() would train -----------------------------------------------------------------

    def learned(self, training: Training) -> None:
        """Take what follows for the rest of the script, up to the next learn()."""
        _use_once(training)
        with self.lock:
            if self.begun:
                self._highest = self._higher()
            self._model = weakref.ref(training.identity())
            self._returned, self._tree_at = self.meter.now(), time.monotonic()
            self.meter.start()
            self._own = self._high = proc.resident(os.getpid())
            self._grown, self._searched = 0, 0
            self._at = AfterReading(grown=0)
            if not self.begun:
                self.begun = True
                self._deadline = time.monotonic() + self.seconds
                quiet_thread(self._watch, "memfit after learn")

    def ended(self, error: BaseException | None = None) -> AfterReading:
        """All that was seen of a script that came to an end; nothing is watched any more."""
        self.lock.acquire()
        found = self._higher()
        if error is None:
            return found
        line, _ = self._line_of([(f, n) for f, n in traceback.walk_tb(error.__traceback__)])
        said = f"{type(error).__name__}: {error}".strip().splitlines()[0]
        return replace(found, ended=AfterEnd.FAILED, ended_line=line, reason=said)

    # -- meanwhile -----------------------------------------------------------------------------

    def _watch(self) -> None:
        while True:
            time.sleep(_LOOK_SECONDS)
            with self.lock:
                self._look()
                end = AfterEnd.TIME if time.monotonic() > self._deadline else None
                if end is None and self._seen_enough():
                    end = AfterEnd.ENOUGH
                if end is not None:
                    line, calling = self._where()
                    found = replace(self._higher(), ended=end, ended_line=line, reason=calling)
                    self.finish(found)

    def _look(self) -> None:
        resident = proc.resident(os.getpid())
        if resident > self._high + _STEP:
            self._high = resident
            line, calling = self._where()
            alive = self._model() is not None
            self._at = replace(self._at, line=line, calling=calling, model_alive=alive)
        grown = resident - self._own
        if grown > max(_LEAST_GROWTH, _MORE_GROWTH * self._searched):
            self._searched = grown
            self._search(grown)
        if time.monotonic() > self._tree_at + _TREE_SECONDS:
            self._read_tree()

    def _read_tree(self) -> None:
        """What all processes have come to, with the kernel's own mark of this one's highest."""
        self._grown = max(self._grown, self.meter.peak() - self._returned)
        self._tree_at = time.monotonic()

    def _search(self, grown: int) -> None:
        found = None
        with suppress(Exception):  # the script changes its objects meanwhile
            found = held_frames(self._frame(), self.script)
        if found is not None and 2 * found.bytes > grown:
            line, _ = self._where()
            found = replace(found, line=line, beside=max(0, grown - found.bytes))
            self._at = replace(self._at, frames=found)

    def _seen_enough(self) -> bool:
        frames: HeldFrames | None = self._at.frames
        if frames is None or self._searched < _ENOUGH:
            return False
        return bool(frames.video_length or frames.episode_steps)

    def _higher(self) -> AfterReading:
        """What was seen since the last learn(), or before it where that was more."""
        self._read_tree()
        grown = self._high - self._own
        if self._at.frames is None and grown > _LEAST_GROWTH:
            self._search(grown)
        now = replace(self._at, grown=max(0, self._grown))
        before = self._highest
        return before if before is not None and before.grown > now.grown else now

    def _frame(self) -> FrameType | None:
        return sys._current_frames().get(self.main)

    def _where(self) -> tuple[int, str]:
        """The script's line that is at work, and the name of the function that it has called."""
        return self._line_of(list(traceback.walk_stack(self._frame()))[::-1])

    def _line_of(self, stack: list[tuple[FrameType, int]]) -> tuple[int, str]:
        """The same in a stack, outermost first: an env of the script's own is not where it is."""
        line = 0
        for frame, number in stack:
            if frame.f_code.co_filename == self.script:
                line = number
            elif line:
                return line, frame.f_code.co_name
        return line, ""


def _use_once(training: Training) -> None:
    """Collect a little and update once: what first use of the libraries costs is no news then."""
    if not isinstance(training, Driven):
        return
    with suppress(Exception):  # the survey says what is wrong with it
        training.prepare()
        knobs = training.facts().knobs
        work = Work(batch=min(training.sizes(knobs).width, WARM_SAMPLES), knobs=knobs)
        training.collect(work)
        training.update(work, no_mark)
        training.drop_gradients()
