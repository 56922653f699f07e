"""What a worker process does: it plays one env and answers over a pipe.

It loads the emulator, numpy and Gymnasium. It never loads torch or stable-baselines3, which are
most of what a worker of the library's own kind holds.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
from collections.abc import Iterator
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any

from memfit.errors import MemfitError, UsageError
from memfit.systems.fighter.env import FighterEnv
from memfit.systems.fighter.settings import Game


def serve(remote: Connection, others: tuple[Connection, ...], game: Game) -> None:
    """Answer until told to close, or until the other end is gone."""
    for other in others:
        other.close()
    try:
        env = FighterEnv(game, render_mode="rgb_array")
    except MemfitError as error:
        remote.send(error)
        return
    remote.send((env.observation_space, env.action_space))
    with contextlib.suppress(EOFError, BrokenPipeError):
        _answer(remote, env)
    env.close()


def _answer(remote: Connection, env: FighterEnv) -> None:
    reset_info: dict[str, Any] = {}
    while True:
        command, data = remote.recv()
        match command:
            case "step":
                frame, reward, terminated, truncated, info = env.step(data)
                done = terminated or truncated
                info["TimeLimit.truncated"] = truncated and not terminated
                if done:
                    info["terminal_observation"] = frame
                    frame, reset_info = env.reset()
                remote.send((frame, reward, done, info, reset_info))
            case "reset":
                frame, reset_info = env.reset(seed=data)
                remote.send((frame, reset_info))
            case "get":
                remote.send(getattr(env, data))
            case "set":
                setattr(env, *data)
                remote.send(None)
            case "call":
                name, args, kwargs = data
                remote.send(getattr(env, name)(*args, **kwargs))
            case _:
                return


def check_game(game: Game) -> None:
    """Start the game once in a process that then ends, and refuse one that does not start."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=serve, args=(there, (here,), game), daemon=True)
    with uninterrupted():
        process.start()
    there.close()
    try:
        answer = here.recv()
    except (EOFError, ConnectionError):
        raise UsageError("the emulator fails with this ROM or savestate: give others") from None
    finally:
        here.close()
        process.join()
    if isinstance(answer, MemfitError):
        raise answer


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Processes that are started here do not hear Ctrl-C, which reaches all of a terminal.

    The main process hears it, and closes the others in order.
    """
    resource_tracker.ensure_running()  # first, since starting it takes the signal back
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
