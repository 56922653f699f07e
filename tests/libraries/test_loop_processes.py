"""Processes that a script starts and waits for, whose training is not seen."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import queues
from multiprocessing.process import BaseProcess
from types import ModuleType

import pytest

from memfit.libraries.loop.process_calls import ProcessCalls


@dataclass
class Heard:
    """Takes down what it hears."""

    pid: int = field(default_factory=os.getpid)
    told: list[str] = field(default_factory=list)
    waited: list[Callable[[], bool]] = field(default_factory=list)

    def started_process(self) -> None:
        self.told.append("started")

    def waits_for(self, running: Callable[[], bool]) -> None:
        self.told.append("waits, while it runs" if running() else "waits, and it is gone")
        self.waited.append(running)


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Heard:
    for name in ("start", "join"):
        monkeypatch.setattr(BaseProcess, name, getattr(BaseProcess, name))
    for cls in (queues.Queue, queues.SimpleQueue):
        monkeypatch.setattr(cls, "get", cls.get)
    module = ModuleType("multiprocessing.process")
    module.BaseProcess = BaseProcess  # type: ignore[attr-defined]
    found = Heard()
    hooks = ProcessCalls(found).hooks()
    hooks["multiprocessing.process"](module)
    hooks["multiprocessing.queues"](queues)
    return found


def test_a_process_that_is_waited_for_is_told(heard: Heard) -> None:
    context = multiprocessing.get_context("fork")
    let_go = context.Event()
    process = context.Process(target=let_go.wait)
    process.start()
    process.join(0.01)  # asks, and does not wait
    assert heard.told == []
    let_go.set()
    process.join()
    assert heard.told[0].startswith("waits")
    assert process.exitcode == 0
    assert not heard.waited[0]()


def test_what_processes_give_is_asked_for(heard: Heard) -> None:
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    queue.put(1)
    assert queue.get() == 1 and heard.told == []  # nothing was started
    process = context.Process(target=queue.put, args=(2,))
    process.start()
    assert queue.get() == 2
    assert heard.told == ["started"]
    process.join()


def test_asking_whether_it_runs_leaves_its_end_to_the_script(heard: Heard) -> None:
    context = multiprocessing.get_context("fork")
    process = context.Process(target=os._exit, args=(7,))
    process.start()
    os.waitid(os.P_PID, process.pid or 0, os.WEXITED | os.WNOWAIT)
    process.join()
    assert heard.told == ["waits, and it is gone"]
    assert process.exitcode == 7


def test_what_serves_the_script_is_not_what_it_is_for(heard: Heard) -> None:
    process = multiprocessing.get_context("fork").Process(target=int, daemon=True)
    process.start()
    process.join(10)
    assert heard.told == []
