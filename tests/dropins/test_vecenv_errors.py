"""What goes wrong in or around workers is said, with what to do, and leaves nothing behind."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from memfit.dropins import LightVecEnv, LightVectorEnv
from memfit.errors import TargetFailed, UsageError
from tests.dropins.vecenv_envs import Bad, Other, Walk, walks

ACTIONS = np.zeros(3, np.int64)


def bad(how: str) -> list[Any]:
    """Three envs, the second of which goes wrong."""
    return [*walks(1), lambda: Bad(how), *walks(1)]


def family(pids: list[int]) -> list[int]:
    """Those that still run; zombies do not."""
    found = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            continue
        found += [pid] if state != "Z" else []
    return found


def descriptors() -> set[str]:
    found = set()
    for fd in Path("/proc/self/fd").iterdir():
        try:
            found.add(f"{fd.name} {fd.readlink()}")
        except FileNotFoundError:
            continue
    return found


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split())


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Any:
    gc.collect()
    before, processes = descriptors(), children()
    yield
    gc.collect()
    assert descriptors() <= before
    assert children() <= processes


HINTS = {
    "raise": ("env 1 raised KeyError while stepping", "in step\n", "Try the env alone"),
    "exit": ("ended with exit code 3 while stepping", "env", "Try the env alone"),
    "hang": ("gave no answer for 2 seconds while stepping", "_sleep_forever", "raise timeout="),
    "crash": ("was killed by SIGSEGV while stepping", "in step", "Try the env alone"),
    "shape": ("env 1: the observation has shape (4,)", "(3,)", "declare what is returned"),
    "dtype": ("env 1: the observation has dtype complex128", "float32", "declare what"),
}


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("how", HINTS)
def test_a_step_that_goes_wrong_ends_all_workers(how: str, workers: int) -> None:
    env = LightVecEnv(bad(how), workers=workers, timeout=2.0)
    pids = env.pids
    assert family(pids) == pids
    env.reset()
    env.step(ACTIONS)
    env.step(ACTIONS)
    with pytest.raises((TargetFailed, UsageError)) as caught:
        env.step(ACTIONS)
    what, where, todo = HINTS[how]
    text = str(caught.value)
    assert what in text and where in text and todo in text.splitlines()[-1]
    assert env.closed and not family(pids)
    with pytest.raises(UsageError, match="Make a new one"):
        env.step(ACTIONS)
    env.close()


def test_a_worker_that_is_killed_is_reported() -> None:
    env = LightVecEnv(walks(3), workers=3)
    env.reset()
    os.kill(env.pids[1], 9)
    with pytest.raises(TargetFailed, match=r"env 1 .*killed by SIGKILL.*memory"):
        env.step(ACTIONS)
    assert not family(env.pids)


def test_what_an_env_started_goes_with_its_worker() -> None:
    env = LightVecEnv([Walk, lambda: Bad("orphan")], workers=2)
    (child,) = env.env_method("child", indices=1)
    env.reset()
    env.step(ACTIONS[:2])
    env.step(ACTIONS[:2])
    assert family([child]) == [child]
    with pytest.raises(TargetFailed, match="exit code 3"):
        env.step(ACTIONS[:2])
    assert not family([child])


def test_a_factory_that_raises_shows_its_traceback() -> None:
    def broken() -> Any:
        raise ImportError("no such game")

    with pytest.raises(TargetFailed, match="no such game") as caught:
        LightVecEnv([*walks(2), broken], workers=2)
    assert "env 2 raised ImportError" in str(caught.value) and "in broken" in caught.value.output
    assert isinstance(caught.value.__cause__, ImportError)


def test_a_factory_that_cannot_be_pickled_is_named() -> None:
    lock = threading.Lock()

    def holds() -> Any:
        return [lock, Walk()][1]

    with pytest.raises(UsageError, match=r"factory of env 1 .*lock.* inside the factory"):
        LightVecEnv([*walks(1), holds])


def test_a_factory_that_cannot_be_unpickled_shows_why() -> None:
    class Odd:
        def __reduce__(self) -> Any:
            return os.listdir, ("/nowhere",)

    odd = Odd()

    def holds() -> Any:
        return [odd, Walk()][1]

    with pytest.raises(TargetFailed, match="env 1 raised FileNotFoundError while being built"):
        LightVecEnv([*walks(1), holds])


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("what", ["shape", "dtype", "actions"])
def test_envs_of_different_spaces_are_refused(what: str, workers: int) -> None:
    with pytest.raises(UsageError, match=r"_space of env 1 is .* of the same spaces"):
        LightVecEnv([Walk, lambda: Other(what)], workers=workers)


def test_other_bounds_are_no_other_space_for_stable_baselines3() -> None:
    LightVecEnv([Walk, lambda: Other("bounds")], workers=1).close()
    with pytest.raises(UsageError, match="observation_mode='different'"):
        LightVectorEnv([Walk, lambda: Other("bounds")], workers=1)


def test_envs_that_render_in_different_ways_are_refused() -> None:
    def other() -> Any:
        env = Walk()
        env.render_mode = None
        return env

    with pytest.raises(AssertionError, match="render_mode"):  # stable-baselines3's own
        LightVecEnv([Walk, other], workers=2)


def test_two_envs_that_are_one_are_refused() -> None:
    def once() -> Any:
        if not hasattr(gymnasium, "_the_only_walk"):
            gymnasium._the_only_walk = Walk()  # type: ignore[attr-defined]
        return gymnasium._the_only_walk  # type: ignore[attr-defined]

    with pytest.raises(UsageError, match="same env object"):
        LightVecEnv([once, once], workers=1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"workers": 0}, "Give 1 or more"),
        ({"preload": "numpy"}, r"Give \['package.module'\]"),
        ({"preload": ["no_such_module"]}, "no_such_module.*(?s:.*)leave it out"),
        ({"timeout": 0}, "Give seconds"),
        ({"start_method": "fork"}, "Leave start_method= out"),
    ],
)
def test_wrong_options_are_refused(options: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        LightVecEnv(walks(1), **options)


def test_wrong_factories_are_refused() -> None:
    for wrong in ([], [Walk()], [None]):
        with pytest.raises(UsageError, match="list of functions"):
            LightVecEnv(wrong)


def test_calls_in_the_wrong_order_are_refused() -> None:
    env = LightVecEnv(walks(3), workers=2)
    env.reset()
    with pytest.raises(UsageError, match="Call step_async"):
        env.step_wait()
    with pytest.raises(UsageError, match="one action for each env"):
        env.step(np.zeros(2, np.int64))
    assert not env.waiting
    env.step_async(ACTIONS)
    assert env.waiting
    calls: tuple[Callable[[], Any], ...]
    calls = (lambda: env.step_async(ACTIONS), lambda: env.get_attr("level"))
    for call in calls:
        with pytest.raises(UsageError, match=r"step_wait\(\) first, or reset\(\)"):
            call()
    env.reset()  # cancels the step
    assert not env.waiting
    assert len(env.step(ACTIONS)[1]) == 3
    env.close()
    env.close()
    for call in (env.reset, lambda: env.step(ACTIONS), lambda: env.get_attr("level")):
        with pytest.raises(UsageError, match="Make a new one"):
            call()


def test_what_close_raises_is_said_after_all_workers_are_gone() -> None:
    env = LightVecEnv(bad("close"), workers=2)
    pids = env.pids
    with pytest.raises(TargetFailed, match=r"it does not close(?s:.*)Fix its close\(\)"):
        env.close()
    assert not family(pids)


def test_an_env_that_is_forgotten_ends_its_workers() -> None:
    env = LightVecEnv(walks(2), workers=2)
    pids = env.pids
    env.step_async(ACTIONS[:2])  # even with a step going on
    del env
    gc.collect()
    assert not family(pids)


def test_a_worker_that_hangs_does_not_keep_close_waiting() -> None:
    env = LightVecEnv(bad("hang"), workers=3, timeout=1.0)
    env.reset()
    for _ in range(2):
        env.step(ACTIONS)
    env.step_async(ACTIONS)
    pids = env.pids
    env.close()
    assert not family(pids)


def test_large_arrays_of_factories_are_shared_and_cannot_be_written_to() -> None:
    table = np.arange(100_000.0)
    small = np.zeros(3)

    class Reads(Walk):
        def __init__(self, data: Any, own: Any) -> None:
            super().__init__()
            self.data, self.own = data, own

        def total(self) -> float:
            self.own += 1
            return float(self.data.sum() + self.own.sum())

        def spoil(self) -> None:
            self.data[0] = 1

        def is_writable(self) -> bool:
            return bool(self.data.flags.writeable)

    env = LightVecEnv([lambda: Reads(table, small) for _ in range(3)], workers=2)
    assert env.env_method("total") == [table.sum() + 3] * 3  # each has small arrays of its own
    assert env.env_method("is_writable") == [False] * 3
    with pytest.raises(ValueError, match="read-only"):
        env.env_method("spoil")
    env.close()


@pytest.mark.parametrize("what", ["send", "recv"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_interrupted_at_any_moment_calls_still_get_their_own_answers(
    what: str, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by Ctrl-C, when some workers have got or sent a message and others have not."""
    env = LightVecEnv(walks(3), workers=2)
    channel = env._pool.workers[1].channel
    whole = getattr(type(channel), what)
    armed: list[bool] = []

    def interrupted(self: Any, *args: Any) -> Any:
        if not armed or self is not channel:
            return whole(self, *args)
        armed.clear()
        if when == "after":
            whole(self, *args)
        raise KeyboardInterrupt

    monkeypatch.setattr(type(channel), what, interrupted)
    env.seed(1)
    first = env.reset().copy()
    for _ in range(2):
        armed.append(True)
        with pytest.raises(KeyboardInterrupt):
            env.step(ACTIONS)
        calls: tuple[Callable[[], Any], ...]
        calls = (lambda: env.step(ACTIONS), lambda: env.step_async(ACTIONS))
        for call in calls:
            with pytest.raises(UsageError, match=r"Call reset\(\) first"):
                call()
        assert env.env_method("add", 1) == [1, 1, 1]
        armed.append(True)
        with pytest.raises(KeyboardInterrupt):
            env.get_attr("level")
        assert env.env_method("add", 2) == [2, 2, 2]
        armed.append(True)
        with pytest.raises(KeyboardInterrupt):
            env.reset()
        env.seed(1)
        assert np.array_equal(env.reset(), first)
        env.step(ACTIONS)
    env.close()


def test_interrupted_steps_can_be_followed_by_a_reset() -> None:
    class Slow(Walk):
        def step(self, action: Any) -> Any:
            time.sleep(0.3)
            return super().step(action)

    env = LightVecEnv([Slow, Slow], workers=2)
    env.reset()
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(0.1, lambda: __import__("signal").pthread_kill(main, 2))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        env.step(ACTIONS[:2])
    timer.join()
    env.seed(1)
    first = env.reset().copy()
    env.seed(1)
    assert np.array_equal(first, env.reset())
    assert len(env.step(ACTIONS[:2])[1]) == 2
    env.close()


def test_a_long_answer_that_nobody_reads_keeps_no_long_message_waiting() -> None:
    class Talks(Walk):
        def step(self, action: Any) -> Any:
            *found, info = super().step(action)
            return (*found, {**info, "text": bytes(1 << 20)})

    env = LightVecEnv([Talks, Talks], workers=1, timeout=20.0)
    env.reset()
    env.step_async(ACTIONS[:2])
    env.set_options({"text": "x" * (1 << 20)})
    env.reset()
    assert len(env.step(ACTIONS[:2])[1]) == 2
    env.close()
