"""Steps an environment in a child, and reads it from outside where it waits.

The parent decides how far the child goes; the child waits while it is read, so that a reading
belongs to one frame and costs the environment nothing but the time.
"""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memfit.measure.children import sandbox
from memfit.measure.children.sandbox import Ended, HeldChild
from memfit.measure.children.supervision import Supervised, TreePeak
from memfit.measure.live.outside_walk.answer import walk_outside
from memfit.measure.live.outside_walk.interpreter import NotWalkable
from memfit.measure.profile.env_readings import Said, full_reading, quick_reading
from memfit.model.job import Job
from memfit.model.profile import EnvReading
from memfit.model.stepping_words import ASK, GO, SAID, TELL, TOLD, Command

_LOOK_SECONDS = 0.1
_ALL_ROWS = 5000
_LEAST_ROW = 256  # bytes of Python objects that have a row of their own


class Stopped(Exception):
    """The child does not wait for a word any more: how it ended."""

    def __init__(self, ended: Ended) -> None:
        super().__init__(ended.answer.status.value)
        self.ended = ended


class Stepper:
    """A child that steps an environment, as seen by who tells it what to do."""

    def __init__(
        self,
        child: HeldChild,
        ask: int,
        go: int,
        *,
        memory: int,
        timeout: float,
        alive: Callable[[int, int], None],
    ) -> None:
        self.child = child
        self.memory = memory
        self.timeout = timeout
        self.alive = alive
        self.peak = TreePeak(child.tree)
        self.frames_wanted = 0
        self.walked_all = True
        self._ask, self._go = ask, go
        self._started = time.monotonic()
        self.said = self._wait()

    @property
    def left(self) -> float:
        """Seconds until the child is ended."""
        return self.timeout - (time.monotonic() - self._started)

    def step(self, soft: int, hard: int) -> Said:
        """Step to a frame, and on to an episode's end, at the most to another frame."""
        self.frames_wanted = soft
        return self.do(Command.STEP, soft, max(soft, hard))

    def do(self, command: Command, soft: int = 0, hard: int = 0) -> Said:
        """Give a command, and wait until it is done."""
        os.write(self._go, TOLD.pack(command, soft, hard))
        self.said = self._wait()
        return self.said

    def quick(self, leg: int) -> EnvReading:
        """A reading that costs little."""
        found = quick_reading(self.child.tree, self.said, leg)
        if found is None:
            raise Stopped(self._ended())
        return found

    def full(self, leg: int, *, collect: bool = False) -> EnvReading:
        """A reading of all; with `collect`, Python's garbage is collected before."""
        if collect:
            self.do(Command.COLLECT)
        found = full_reading(self.child.tree, self.said, leg, collected=collect)
        if found is None:
            raise Stopped(self._ended())
        return found

    def holders(
        self, seconds: float, packages: Collection[str] | None = ()
    ) -> dict[tuple[str, str], tuple[int, int]]:
        """Bytes and numbers by path and kind, read from outside; nothing where that cannot be.

        Of what `packages` hold, the paths are told as well; None: of all. Where there is not time
        enough for that, nothing is told.
        """
        try:
            found = walk_outside(
                self.child.tree.main,
                seconds=seconds,
                roles={},
                variables_only=True,
                rows=_ALL_ROWS,
                least=_LEAST_ROW,
                packages=packages,
            )
        except NotWalkable:
            return {}
        cut = found["walk"]["cut"]
        if packages == ():
            self.walked_all = self.walked_all and not cut
        elif cut:
            return {}
        rows: dict[tuple[str, str], tuple[int, int]] = {}
        for kind, of in (("arrays", "count"), ("python", "objects")):
            for row in found[kind]:
                size, count = rows.get((row["holder"], kind), (0, 0))
                rows[row["holder"], kind] = size + row["nbytes"], count + row[of]
        return rows

    def tell(self, paths: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """What the child says of the things at these paths."""
        file = self.child.scratch / TELL
        file.write_text(json.dumps(list(paths)))
        self.do(Command.TELL)
        found: dict[str, dict[str, Any]] = json.loads(file.read_text())
        return found

    def end(self) -> Ended:
        """Let the child say what it was, and end."""
        os.write(self._go, TOLD.pack(Command.END, 0, 0))
        while self.child.poll() is None and not self.child.has_answered():
            self._check_limits()
            time.sleep(0.005)
        return self._ended()

    def _wait(self) -> Said:
        """Wait for the child's word, within its limits."""
        waiting = select.poll()
        waiting.register(self._ask, select.POLLIN)
        while not any(event & select.POLLIN for _, event in waiting.poll(1000 * _LOOK_SECONDS)):
            self._check_limits()
            if self.child.has_answered() or self.child.poll() is not None:
                raise Stopped(self._ended())
        words = SAID.unpack(os.read(self._ask, SAID.size))
        return Said(
            frames=words[0],
            episodes=words[1],
            ended=bool(words[2]),
            nanoseconds=words[3],
            in_use=words[4],
            mapped=words[5],
            free=words[6],
            arena=words[7],
            collects=bool(words[8]),
        )

    def _check_limits(self) -> None:
        self.look()
        held = self.peak.bytes
        self.alive(self.frames_wanted, held)
        over, late = held > self.memory, time.monotonic() - self._started > self.timeout
        if over or late:
            raise Stopped(self._ended(over=over, late=late))

    def look(self) -> None:
        """Take note of what the whole tree holds, where it waits anyway."""
        self.peak.look_at_tree()
        self.peak.look()

    def _ended(self, *, over: bool = False, late: bool = False) -> Ended:
        seen = Supervised(
            peak_bytes=self.peak.bytes,
            outside_bytes=self.peak.outside,
            seconds=time.monotonic() - self._started,
            exit_code=None if over or late else self.child.poll(),
            over_limit=over,
            timed_out=late,
        )
        return self.child.ended(seen, memory=self.memory, timeout=self.timeout)


@contextmanager
def stepping(
    job: Job,
    *,
    timeout: float,
    memory: int,
    alive: Callable[[int, int], None] = lambda frame, held: None,
) -> Iterator[Stepper]:
    """A child that has made its environments and waits for a word.

    Raises Stopped where it does not come to that. `alive` gets the frame that it is stepping to,
    and what it has held at the most.
    """
    pipes: list[int] = []

    def prepare(scratch: Path) -> None:
        for name in (ASK, GO):
            os.mkfifo(scratch / name)
            # Both ends, so that opening waits for nobody, here or in the child.
            pipes.append(os.open(scratch / name, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK))

    try:
        with sandbox.held(job, before=prepare) as child:
            yield Stepper(child, *pipes, memory=memory, timeout=timeout, alive=alive)
    finally:
        for number in pipes:
            os.close(number)
