"""What a worker process does: it builds its envs, steps them, and answers."""

from __future__ import annotations

import contextlib
import itertools
import mmap
import os
import pickle
import sys
import traceback
from typing import Any

import numpy as np

from memfit.dropins.workers.channel import Channel
from memfit.dropins.workers.envs import (
    REWARD_SENT,
    STYLES,
    GymnasiumEnvs,
    Sb3Envs,
    reward_kind,
)
from memfit.dropins.workers.layout import FLAGS, Layout, checked, pick

# Kinds of messages to a worker ...
STEP, STEP_ANY, ACTIONS, RESET, CALL, MEMORY, SYNC, CLOSE = range(8)
# ... and from it.
DONE, FAILED = range(2)


def packed(value: Any) -> bytes:
    """Pickled; what only cloudpickle can (classes of a script itself) by cloudpickle."""
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError):
        import cloudpickle

        return bytes(cloudpickle.dumps(value))


class WorkerLoop:
    """Envs `first`, `first + 1` ... of a vector env."""

    def __init__(self, channel: Channel, first: int) -> None:
        self._channel = channel
        self._first = first
        self._at = first  # the env at work, for messages
        self._envs: Sb3Envs | GymnasiumEnvs
        self._layout: Layout
        self._slots: list[list[Any]]
        self._action_type: tuple[Any, tuple[int, ...]]

    def run(self, factories: list[Any], style: str, mode: str) -> None:
        """Answer until told to close, or until the training is gone."""
        before = len(sys.modules)
        try:
            self._envs = STYLES[style](mode)
            for k, factory in enumerate(factories):
                self._at = self._first + k
                if isinstance(factory, BaseException):
                    raise factory
                self._envs.add(factory())
            first = self._envs.envs[0]
            spaces = [(env.observation_space, env.action_space) for env in self._envs.envs]
            facts = {
                # Equal ones are the same object, which is sent once.
                "spaces": [spaces[0] if both == spaces[0] else both for both in spaces],
                "metadata": getattr(first, "metadata", {}),
                "render_mode": getattr(first, "render_mode", None),
                # Other modules' names are not touched, as that would unshare their pages.
                "late": sorted(itertools.islice(reversed(sys.modules), len(sys.modules) - before)),
            }
        except BaseException as error:  # noqa: BLE001 - told to the training, whatever it is
            self._failed(0, error)
            return
        self._channel.send(0, DONE, packed(facts))
        while True:
            try:
                number, kind, payload, fds = self._channel.recv()
            except EOFError:
                number, kind, payload, fds = 0, CLOSE, bytearray(), []
            try:
                answer = self._answer(kind, payload, fds)
            except BaseException as error:  # noqa: BLE001 - told to the training, whatever it is
                self._failed(number, error)
                answer = None
            if answer is not None:
                with contextlib.suppress(BrokenPipeError):
                    self._channel.send(number, DONE, answer)
            if kind == CLOSE:
                return

    def _failed(self, number: int, error: BaseException) -> None:
        text = "".join(traceback.format_exception(error))
        try:
            whole: bytes | None = packed(error)
            pickle.loads(whole or b"")
        except Exception:  # noqa: BLE001 - any class may be written so that it cannot be pickled
            whole = None
        told = (self._at, type(error).__name__, str(error), text, whole)
        with contextlib.suppress(BrokenPipeError):
            self._channel.send(number, FAILED, pickle.dumps(told))

    def _answer(self, kind: int, payload: bytearray, fds: list[int]) -> bytes | None:
        if kind == STEP:
            dtype, rest = self._action_type
            actions: Any = np.frombuffer(payload, dtype, (len(payload) - 1) // dtype.itemsize)
            return self._step(payload[-1], actions.reshape(-1, *rest))
        if kind == STEP_ANY:
            slot, actions = pickle.loads(payload)
            return self._step(slot, actions)
        if kind == ACTIONS:
            self._action_type = pickle.loads(payload)
            return None
        if kind == RESET:
            return self._reset(*pickle.loads(payload))
        if kind == CALL:
            return self._call(*pickle.loads(payload))
        if kind == SYNC:
            return b""
        if kind == MEMORY:
            self._map(pickle.loads(payload), fds[0])
            return b""
        for k, env in enumerate(self._envs.envs):
            self._at = self._first + k
            env.close()
        return b""

    def _map(self, layout: Layout, fd: int) -> None:
        memory = mmap.mmap(fd, layout.nbytes)
        os.close(fd)
        self._layout = layout
        self._slots = [
            [leaf.array(memory, s * layout.slot_bytes, layout.n_envs) for leaf in layout.leaves]
            for s in range(layout.slots)
        ]
        # Views of bytes: numbers are written to them quicker than to arrays.
        rewards: Any = layout.rewards(memory)
        flags: Any = layout.flags(memory).reshape(-1)
        self._rewards, self._flags = memoryview(rewards), memoryview(flags)

    def _step(self, slot: int, actions: Any) -> bytes:
        notes = []
        arrays = self._slots[slot]
        for k, action in enumerate(actions):
            at = self._at = self._first + k
            obs, reward, ended, cut, told = self._envs.step(k, action)
            others = self._write(arrays, at, obs)
            kind = reward_kind(reward)
            if kind != REWARD_SENT:
                self._rewards[at] = reward
            noted = told is not None or kind == REWARD_SENT or bool(others)
            self._flags[at * FLAGS : at * FLAGS + FLAGS] = bytes((ended, cut, kind, noted))
            if noted:
                # Packed now: an env may change its info at its next step.
                notes.append(packed((told, reward if kind == REWARD_SENT else None, others)))
        return pickle.dumps(notes) if notes else b""

    def _reset(self, slot: int, seeds: list[Any], options: list[Any], chosen: list[bool]) -> bytes:
        notes = []
        for k, (seed, given) in enumerate(zip(seeds, options, strict=True)):
            at = self._at = self._first + k
            obs, info = (
                self._envs.reset(k, seed, given) if chosen[k] else (self._envs.last.get(k), {})
            )
            others = self._write(self._slots[slot], at, obs)
            notes.append(packed((info, others)))
        return pickle.dumps(notes)

    def _write(self, arrays: list[Any], at: int, obs: Any) -> list[Any]:
        for leaf, array in zip(self._layout.leaves, arrays, strict=True):
            part = pick(obs, leaf.path) if leaf.path else obs
            if type(part) is not np.ndarray or part.shape != leaf.shape or part.dtype != leaf.dtype:
                part = checked(part, leaf)
            array[at] = part
        others = self._layout.others
        return [pick(obs, path) for path in others] if others else []

    def _call(
        self, chosen: list[int], what: str, args: list[tuple[Any, ...]], options: dict[str, Any]
    ) -> bytes:
        found = []
        for k, given in zip(chosen, args, strict=True):
            self._at = self._first + k
            found.append(self._envs.call(k, what, given, options))
        return packed(found)
