"""Processes that collect for a training: each answers questions through a pipe of its own."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any

from memfit.tracking.side_by_side import end_with_parent

_LOOK_SECONDS = 0.1


class WorkerDied(Exception):
    """A rollout worker ended before its rollout did."""


class Workers:
    """So many processes, forked or started anew. Close them to end them."""

    def __init__(
        self, method: str, count: int, make: Callable[..., Callable[[Any], Any]], *given: Any
    ) -> None:
        """`make(*given, number)` gives, in the worker, what answers its questions."""
        context: Any = multiprocessing.get_context(method)
        self.all: list[tuple[Any, Connection]] = []  # processes, and the pipes to them
        try:
            for number in range(count):
                here, there = context.Pipe()
                process = context.Process(
                    target=_serve,
                    args=(make, (*given, number), there, os.getpid()),
                    daemon=True,
                    name=f"rollout worker {number}",
                )
                process.start()
                there.close()
                self.all.append((process, here))
        except BaseException:
            self.close()
            raise

    def ask(self, question: Any, check: Callable[[], None] = lambda: None) -> list[Any]:
        """Every worker's answer; `check` is called while they work, and may raise."""
        name = ""
        try:
            for process, pipe in self.all:
                name = process.name
                pipe.send(question)
            answers = []
            for process, pipe in self.all:
                name = process.name
                while not wait([pipe, process.sentinel], timeout=_LOOK_SECONDS):
                    check()
                if not pipe.poll():
                    raise EOFError
                answers.append(pipe.recv())
        except (EOFError, ConnectionError):
            raise WorkerDied(f"{name} ended before its rollout did") from None
        return answers

    def close(self) -> None:
        """End all workers, and wait until they are gone."""
        for process, pipe in self.all:
            process.kill()
            pipe.close()
        for process, _ in self.all:
            process.join()
            process.close()
        self.all = []


def _serve(
    make: Callable[..., Callable[[Any], Any]],
    given: tuple[Any, ...],
    pipe: Connection,
    parent: int,
) -> None:
    """A worker's life: an answer to every question."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the training says when it is over
    end_with_parent(parent)
    answer = make(*given)
    while True:
        try:
            pipe.send(answer(pipe.recv()))
        except (EOFError, OSError):
            return
