"""Steps an environment as it is told, and waits where it is read.

What happens between two readings leaves nothing of memfit's own behind: what it says goes through
buffers that were made before the first one.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

from memfit.child.disposable import Disposable
from memfit.child.env.made_envs import NoEnvironment, Policy, Slot, WrongShape, make
from memfit.child.env.policies import at_random, policy_of
from memfit.dropins.settings import trim
from memfit.inside.pools import malloc_figures
from memfit.measure.children.way import Way
from memfit.model.job import Answer, Job, Status
from memfit.model.profile import Stepped, Stepping
from memfit.model.stepping_words import ASK, GO, SAID, TELL, TOLD, Command, Moment

_NO_FIGURES = SimpleNamespace(uordblks=0, hblkhd=0, fordblks=0, arena=0)
_CHECKED = 3  # first frames whose observations are held against their space, as is each last one


class EnvChild(Disposable):
    """The environments of one job, and the pipes through which it is told what to do."""

    def __init__(self, job: Job, result: Path, scratch: Path, way: Way) -> None:
        super().__init__(job, result, scratch, way)
        assert job.stepping is not None
        self.stepping: Stepping = job.stepping
        self.slots: list[Slot] = []
        self.policy: Policy = at_random
        self.ready = False
        self.frames = self.nanoseconds = 0
        self.buffer = bytearray(SAID.size)
        self.command = bytearray(TOLD.size)
        self.into = [self.command]
        self.traced: Any = None
        self.begun = False

    def run(self) -> Stepped:
        """Make the environments, step them as told, and say what they were."""
        self.confine()
        self.slots = make(self.stepping)
        self.policy = policy_of(self.stepping.policy)
        self.ready = True
        self.name_roots()
        for number, slot in enumerate(self.slots):
            slot.seed_actions(self.stepping.seed + number)
            slot.reset(self.stepping.seed + number)
            slot.check()
        self.begun = True
        if self.stepping.observe:
            from memfit.child.env.observation_facts import observed

            return observed(self)
        self.serve()
        found = Stepped(
            env=self.slots[0].name,
            frames=self.frames,
            episodes=self.episodes,
        )
        if self.traced is not None:
            return replace(found, sites=self.traced.sites())
        return found

    @property
    def moment(self) -> str:
        """What is being done: said where it fails."""
        if not self.slots:
            return Moment.MADE
        if not self.ready:
            return Moment.POLICY
        if not self.begun:
            return Moment.FIRST
        return f"it was stepped (frame {self.frames + 1:,}, episode {self.episodes + 1:,})"

    @property
    def episodes(self) -> int:
        return sum(slot.episodes for slot in self.slots)

    def name_roots(self) -> None:
        """Let who holds what be named from `env`, as its author would."""
        main = sys.modules["__main__"].__dict__
        if len(self.slots) == 1:
            slot = self.slots[0]
            main["env"] = slot.unwrapped
            if slot.env is not slot.unwrapped:
                main["wrapped"] = slot.env
        else:
            main["envs"] = [slot.unwrapped for slot in self.slots]

    # -- pipes -----------------------------------------------------------------------------------

    def serve(self) -> None:
        """Do what is told, and say afterwards where things are, until told to end."""
        ask = os.open(self.scratch / ASK, os.O_WRONLY | os.O_CLOEXEC)
        go = os.open(self.scratch / GO, os.O_RDONLY | os.O_CLOEXEC)
        malloc_figures()  # the first call makes what later ones use
        ended = 1
        while True:
            self.say(ask, ended)
            if os.readv(go, self.into) != TOLD.size:
                os._exit(0)  # nobody is there any more
            command, soft, hard = TOLD.unpack(self.command)
            match command:
                case Command.STEP:
                    ended = self.step_to(soft, hard)
                    for slot in self.slots:
                        slot.check()  # what a reset gave
                case Command.COLLECT:
                    if gc.isenabled():
                        gc.collect()
                case Command.TRIM:
                    trim()
                case Command.TELL:
                    from memfit.child.env.resolved_holders import tell

                    tell(self.scratch / TELL)
                case Command.MARK:
                    from memfit.child.env.allocating_lines import Recording

                    self.traced = Recording(self.scratch)
                case _:
                    return

    def say(self, ask: int, ended: int) -> None:
        figures = malloc_figures() or _NO_FIGURES
        SAID.pack_into(
            self.buffer,
            0,
            self.frames,
            self.episodes,
            ended,
            self.nanoseconds,
            figures.uordblks,
            figures.hblkhd,
            figures.fordblks,
            figures.arena,
            gc.isenabled(),
        )
        os.write(ask, self.buffer)

    def step_to(self, soft: int, hard: int) -> int:
        """Step up to a frame and on to an episode's end; whether there was one.

        The loop is one function, so that a traceback that the environment keeps holds one frame of
        it, as of any other loop.
        """
        begun = time.perf_counter_ns()
        while True:
            ended = 0
            for number, slot in enumerate(self.slots):
                over = slot.stepped(slot.env.step(self.policy(slot)))
                if self.frames < _CHECKED or self.frames + 1 >= soft:
                    slot.check()
                if over and slot.agents == 1:
                    slot.begun(slot.env.reset())
                if over and not number:
                    ended = 1
            self.frames += 1
            if os.getpid() != self.own:  # a fork of the environment's own came back here
                os._exit(0)
            if (self.frames >= soft and ended) or self.frames >= hard:
                break
        self.nanoseconds += time.perf_counter_ns() - begun
        return ended


def step_env(job: Job, result: Path, scratch: Path, way: Way) -> NoReturn:
    """Do one job and end, whatever happens."""
    child = EnvChild(job, result, scratch, way)
    try:
        answer = Answer(status=Status.STEPPED, stepped=child.run())
    except SystemExit as stop:
        answer = Answer(
            status=Status.TARGET_FAILED, output=f"it called sys.exit({stop.code!r}) while stepped"
        )
    except NoEnvironment as why:
        answer = Answer(status=Status.BAD_SPEC, reason=str(why))
    except WrongShape as why:
        answer = Answer(status=Status.UNSUPPORTED, reason=str(why))
    except BaseException as error:  # noqa: BLE001 - whatever the target raises is the answer
        from memfit.child.failures import answer_to

        answer = answer_to(error)
        if answer.status is Status.TARGET_FAILED:
            answer = replace(answer, reason=child.moment)
    if os.getpid() != child.own:
        os._exit(0)
    child.answer(answer)
