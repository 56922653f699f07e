"""Lets a run train as it is for a number of updates, and tells what became of its parameters."""

from __future__ import annotations

import gc
import hashlib
import os
import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn

from memfit.model.job import Answer, Job, Status, Trained
from memfit.model.training import Looping, LoopListener, Training

_CYCLES, _SECONDS, _UPDATES = 2, 2.0, 12  # that a run goes on for at least, unless told


class CountedTraining(LoopListener):
    """Counts updates and cycles of collecting and updating; `tell` does not come back.

    A run that is told no number of updates ends after its second cycle, which often takes more
    than the first; or when its time is over. One that is told a number is the same up to there.
    """

    def __init__(self, job: Job, tell: Callable[[Answer], NoReturn]) -> None:
        self.job = job
        self.tell = tell
        self.training: Training | None = None  # of a library that knows how buffers are filled
        self.pid = os.getpid()
        self.updates = self.cycles = 0
        self.updating = False
        self.begun = self.busy = 0.0
        self.digest = ""
        self.spent = 0.0, 0.0  # up to the last update that counts
        self.over = False

    def listen(self, training: Looping) -> None:
        """Hear what the run does from now on."""
        self._begin()
        training.listen(self)

    def begins(self, training: Training) -> None:
        """A library's training begins."""
        self._begin()
        self.training = training
        training.hasten()

    def _begin(self) -> None:
        if not self.begun:
            self.begun, self.busy = time.perf_counter(), time.process_time()

    # -- what is heard ---------------------------------------------------------------------------

    def stepped(self, env: object, steps: int) -> None:
        if self.over or os.getpid() != self.pid:
            return
        self._begin()
        if self.updating:
            self.cycles += 1
            self.updating = False
        if self._enough_cycles() or (self.job.updates and self.updates >= self.job.updates):
            self.finish()

    def updated(self) -> None:
        if self.over or os.getpid() != self.pid:
            return
        self._begin()
        if self.job.updates and self.updates >= self.job.updates:
            self.finish()  # what follows the last update that counts shows what it left
        self.updates += 1
        self.updating = True
        if not self.digest:
            self.spent = time.perf_counter() - self.begun, time.process_time() - self.busy
        if self.updates == self.job.updates:
            self.digest = digest_of_parameters()
        elif not self.job.updates and time.perf_counter() - self.begun > self.job.seconds:
            self.finish()

    def _enough_cycles(self) -> bool:
        if self.job.updates or self.cycles < _CYCLES or self.updates < _UPDATES:
            return False
        return time.perf_counter() - self.begun > _SECONDS

    def works_on(self, running: Callable[[], bool]) -> None:
        return

    def compiled(self) -> None:
        return

    def goes_on(self) -> None:
        return

    def due(self, place: str, *, now: bool) -> bool:
        return now

    def saving(self) -> None:
        return

    def saved(self) -> None:
        return

    # -- the end ---------------------------------------------------------------------------------

    def finish(self) -> None:
        """Fill what the run would fill, and answer."""
        self.over = True
        self.tell(self._filled_answer())

    def ended(self) -> Answer | None:
        """What is told of a script that has come to its end, None where it never updated."""
        if not self.updates or self.over:
            return None
        self.over = True
        return self._filled_answer()

    def _filled_answer(self) -> Answer:
        self.digest = self.digest or digest_of_parameters()
        filled = self.training is not None and self.training.fill()
        seconds, busy = self.spent
        counted = self.job.updates or self.updates
        trained = Trained(
            updates=min(counted, self.updates),
            cycles=self.cycles + self.updating,
            seconds=seconds,
            busy_seconds=busy,
            digest=self.digest,
            filled=filled,
        )
        return Answer(status=Status.TRAINED, trained=trained)


def digest_of_parameters() -> str:
    """A digest of all that torch's optimizers train, in whichever order they are found."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return ""
    optimizers = [one for one in gc.get_objects() if _is_optimizer(one, torch)]
    groups = [group for one in optimizers for group in one.param_groups]
    tensors = {id(tensor): tensor for group in groups for tensor in group["params"]}
    each = sorted(_digest(tensor, torch) for tensor in tensors.values())
    return hashlib.sha256("".join(each).encode()).hexdigest() if each else ""


def _digest(tensor: Any, torch: Any) -> str:
    data = tensor.detach().cpu().contiguous()
    found = hashlib.sha256(f"{data.dtype}{tuple(data.shape)}".encode())
    found.update(memoryview(data.reshape(-1).view(torch.uint8).numpy()))
    return found.hexdigest()


def _is_optimizer(thing: Any, torch: Any) -> bool:
    return issubclass(type(thing), torch.optim.Optimizer)
