"""Worker processes with several envs each, under both of the vector envs.

A worker that dies, hangs or raises ends them all; what it did is in the error.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from memfit.dropins.workers.channel import Channel, Late, pair, readable
from memfit.dropins.workers.envs import REWARD_SENT
from memfit.dropins.workers.errors import (
    Worker,
    as_raised,
    check_arguments,
    died,
    equivalent,
    hung,
)
from memfit.dropins.workers.layout import Slots
from memfit.dropins.workers.loop import (
    ACTIONS,
    CALL,
    CLOSE,
    FAILED,
    MEMORY,
    RESET,
    STEP,
    STEP_ANY,
    SYNC,
)
from memfit.dropins.workers.start import Template, load, sent
from memfit.dropins.workers.template import DROP, FORK
from memfit.errors import TargetFailed, UsageError

_START_SECONDS = 600.0
_STOP_SECONDS = 2.0
_PATIENCE_SECONDS = 5.0
# Bytes that a socket takes as a whole, or not at all.
_AT_ONCE = 4096


class WorkerPool:
    """All workers of a vector env."""

    def __init__(
        self,
        env_fns: Sequence[Callable[[], Any]],
        *,
        style: str,
        mode: str = "",
        workers: int | None,
        preload: Iterable[str],
        timeout: float | None,
    ) -> None:
        preload = preload if isinstance(preload, str) else tuple(preload)
        check_arguments(env_fns, workers, preload, timeout)
        self.n_envs = len(env_fns)
        self.workers: list[Worker] = []
        self._slots: Slots | None = None
        self.stopped = False
        # Imports and factories may take longer than a step.
        self._timeout = None if timeout is None else max(timeout, _START_SECONDS)
        self._owner = os.getpid()
        self._action_type: Any = None
        self.torn = False
        count = min(workers or len(os.sched_getaffinity(0)), self.n_envs)
        self._template: Template | None = Template.get()
        try:
            loaded = load(self._template, env_fns, preload, self._timeout)
            for k in range(count):
                first, after = k * self.n_envs // count, (k + 1) * self.n_envs // count
                asked = {"id": loaded, "first": first, "after": after}
                self._fork({**asked, "style": style, "mode": mode})
            self._template.ask(DROP, loaded)
            facts = self._collect("being built")
            self._same_spaces([pickle.loads(found) for found in facts])
            with open(os.memfd_create("memfit-observations", os.MFD_CLOEXEC), "r+b") as file:
                self._slots = Slots(self.observation_space, self.n_envs, file.fileno())
                told = pickle.dumps(self.slots.layout)
                for worker in self.workers:
                    self._send(worker, MEMORY, told, (file.fileno(),))
            self._collect("mapping shared memory")
            self._timeout = timeout
        except BaseException:
            self.stop(_STOP_SECONDS)
            raise

    @property
    def slots(self) -> Slots:
        assert self._slots is not None
        return self._slots

    def _fork(self, asked: dict[str, Any]) -> None:
        assert self._template is not None
        ours, theirs = pair()
        trace = os.memfd_create("memfit-trace", os.MFD_CLOEXEC)
        with theirs:
            try:
                pid, (pidfd,) = self._template.ask(FORK, asked, (theirs.fileno(), trace))
            except BaseException:
                ours.close()
                os.close(trace)
                raise
        self.workers.append(
            Worker(
                first=asked["first"],
                after=asked["after"],
                channel=Channel(ours),
                pid=pid,
                pidfd=pidfd,
                trace=trace,
                pending=True,
            )
        )

    def _same_spaces(self, facts: list[dict[str, Any]]) -> None:
        self.metadata: dict[str, Any] = facts[0]["metadata"]
        self.render_mode: str | None = facts[0]["render_mode"]
        self.late_imports = sorted({name for found in facts for name in found["late"]})
        self.spaces: list[tuple[spaces.Space[Any], spaces.Space[Any]]]
        self.spaces = [both for found in facts for both in found["spaces"]]
        self.observation_space, self.action_space = self.spaces[0]
        for i, both in enumerate(self.spaces):
            if both is self.spaces[i - 1]:
                continue
            for kind, mine, first in zip(
                ("observation", "action"), both, self.spaces[0], strict=True
            ):
                if not equivalent(mine, first):
                    raise UsageError(
                        f"the {kind}_space of env {i} is {mine}, that of env 0 {first}. Give "
                        "envs of the same spaces"
                    )

    def step(self, actions: Any) -> int:
        """Let all envs step; the slot that their observations will lie in."""
        with self._whole():
            slot = self._free_slot()
            if isinstance(actions, np.ndarray) and actions.nbytes and not actions.dtype.hasobject:
                self._send_actions(actions, slot)
            else:
                for worker in self.workers:
                    told = sent((slot, list(actions[worker.first : worker.after])))
                    self._send(worker, STEP_ANY, told)
            return slot

    def _send_actions(self, actions: NDArray[Any], slot: int) -> None:
        kind = (actions.dtype, actions.shape[1:])
        if kind != self._action_type:
            told = pickle.dumps(kind)
            for worker in self.workers:
                self._send(worker, ACTIONS, told)
            self._action_type = kind
        raw, row, end = actions.tobytes(), actions.nbytes // len(actions), bytes((slot,))
        for worker in self.workers:
            self._send(worker, STEP, raw[worker.first * row : worker.after * row] + end)

    def stepped(self) -> tuple[list[Any], list[list[Any]], dict[int, Any]]:
        """What each env said, its parts that are no arrays, and rewards that were sent apart."""
        with self._whole():
            found = self._collect("stepping")
        notes = (pickle.loads(note) for reply in found if reply for note in pickle.loads(reply))
        said, others, rewards = [], [], {}
        for i, (_, _, kind, noted) in enumerate(self.slots.flags.tolist()):
            told, reward, parts = next(notes) if noted else (None, None, [])
            said.append(told)
            others.append(parts)
            if kind == REWARD_SENT:
                rewards[i] = reward
        return said, others, rewards

    def reset(
        self, seeds: Sequence[Any], options: Sequence[Any], chosen: Sequence[bool] | None = None
    ) -> int:
        """Let all chosen envs be reset; the slot that all observations will lie in."""
        self.torn = False
        chosen = [True] * self.n_envs if chosen is None else chosen
        with self._whole():
            slot = self._free_slot()
            for worker in self.workers:
                own = slice(worker.first, worker.after)
                told = (slot, list(seeds[own]), list(options[own]), list(chosen[own]))
                self._send(worker, RESET, sent(told))
            return slot

    def was_reset(self) -> tuple[list[Any], list[list[Any]]]:
        """The info of each env, and its parts that are no arrays."""
        with self._whole():
            found = self._collect("being reset")
        notes = [pickle.loads(note) for reply in found for note in pickle.loads(reply)]
        return [info for info, _ in notes], [parts for _, parts in notes]

    def _free_slot(self) -> int:
        self._settle()
        return self.slots.free()

    def _settle(self) -> None:
        """Wait for what was asked before an interruption or a reset, and forget the answers.

        Else a worker that still writes a long answer would not read the next message.
        """
        for worker in self.workers:
            if worker.pending:
                self._send(worker, SYNC, b"")
        self._collect("stepping")

    def call(
        self, what: str, chosen: Sequence[int], args: Sequence[tuple[Any, ...]], options: Any
    ) -> list[Any]:
        """Ask chosen envs for something; an error is raised as in the env."""
        self.ask_call(what, chosen, args, options)
        return self.called(chosen)

    def ask_call(
        self, what: str, chosen: Sequence[int], args: Sequence[tuple[Any, ...]], options: Any
    ) -> None:
        self._settle()
        for worker in self.workers:
            own = [n for n, i in enumerate(chosen) if worker.first <= i < worker.after]
            if own:
                locally = [chosen[n] - worker.first for n in own]
                told = (locally, what, [args[n] for n in own], options)
                self._send(worker, CALL, sent(told))

    def called(self, chosen: Sequence[int]) -> list[Any]:
        asked = [worker for worker in self.workers if worker.pending]
        replies = self._collect("answering", fatal=False)
        found: dict[int, list[Any]] = {
            worker.first: pickle.loads(reply) for worker, reply in zip(asked, replies, strict=True)
        }
        owner = {i: w.first for w in self.workers for i in range(w.first, w.after)}
        return [found[owner[i]].pop(0) for i in chosen]

    @contextlib.contextmanager
    def _whole(self) -> Iterator[None]:
        """A step or reset is done as a whole, or else envs must be reset."""
        if self.torn:
            raise UsageError(
                "the last step was interrupted, and some envs have taken it. Call reset() first; "
                "before learn(), model.set_env(env) does that"
            )
        try:
            yield
        except BaseException:
            self.torn = True
            raise

    def _send(self, worker: Worker, kind: int, payload: bytes, fds: tuple[int, ...] = ()) -> None:
        worker.pending = True
        try:
            worker.channel.ask(kind, payload, fds)
        except (BrokenPipeError, ConnectionResetError):
            self._fail(self._died(worker, "waiting"))
        except BaseException:
            # Half of a long message may have been sent: nothing can be understood after it.
            if len(payload) > _AT_ONCE:
                self.stop(0.0)
            raise

    def _collect(self, doing: str, *, fatal: bool = True) -> list[bytearray]:
        """The replies of all workers that were asked something."""
        replies, failed = [], None
        for worker in self.workers:
            if not worker.pending:
                continue
            try:
                kind, payload, _ = worker.channel.answer(self._timeout, worker.alive, FAILED)
            except EOFError:
                self._fail(self._died(worker, doing))
            except Late:
                self._fail(hung(worker, self._timeout or 0.0, doing))
            worker.pending = False
            if kind == FAILED:
                failed = failed or pickle.loads(payload)
            replies.append(payload)
        if failed is not None:
            error, cause = as_raised(*failed, doing=doing, fatal=fatal)
            if fatal:
                self._fail(error, cause)
            raise error from cause
        return replies

    def _died(self, worker: Worker, doing: str) -> TargetFailed:
        readable(worker.pidfd, _STOP_SECONDS)
        code = self._template.status(worker.pid) if self._template else None
        return died(worker, code, doing)

    def _fail(self, error: Exception, cause: Exception | None = None) -> NoReturn:
        self.stop(_STOP_SECONDS)
        raise error from cause

    def close(self) -> str:
        """End all workers; what an env raised while it was closed is given back."""
        pending = any(worker.pending for worker in self.workers)
        # After an interruption nobody waits for a step that may never end.
        return self.stop(_PATIENCE_SECONDS if pending else self._timeout)

    def stop(self, seconds: float | None) -> str:
        """End all workers: they close their envs within so many seconds, or are killed.

        What went wrong while closing is given back.
        """
        if self.stopped:
            return ""
        self.stopped = True
        if self._slots is not None:
            self._slots.release()
        mine = os.getpid() == self._owner
        until = None if seconds is None else time.monotonic() + seconds
        wrong = ""
        if mine:
            for worker in self.workers:
                # Without waiting: one that does not read is killed below.
                with contextlib.suppress(OSError):
                    worker.channel.ask(CLOSE)
        try:
            for worker in self.workers:
                if mine:
                    wrong = self._end(worker, until) or wrong
        finally:
            for worker in self.workers:
                worker.channel.close()
                os.close(worker.pidfd)
                os.close(worker.trace)
            if self._template is not None:
                self._template.release()
                self._template = None
        return wrong

    def _end(self, worker: Worker, until: float | None) -> str:
        wrong = ""
        try:
            while True:
                left = None if until is None else max(0.0, until - time.monotonic())
                kind, payload, _ = worker.channel.answer(left, worker.alive)
                if kind == FAILED:
                    wrong = pickle.loads(payload)[3]
        except (EOFError, Late, OSError):
            pass
        left = _STOP_SECONDS if until is None else max(0.0, until - time.monotonic())
        if not readable(worker.pidfd, left):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(worker.pidfd, signal.SIGKILL)
            readable(worker.pidfd, _STOP_SECONDS)
        if self._template is not None:
            self._template.status(worker.pid)
        return wrong
