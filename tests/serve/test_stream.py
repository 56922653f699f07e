"""What is sent to viewers that take it at their own pace."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from memfit.errors import UsageError
from memfit.model import Frame
from memfit.render import drawing_script, live_metrics, live_page, run_parts

pytest.importorskip("starlette")

from memfit.serve.app import Pictures, Site
from memfit.serve.board import Board, Shown
from memfit.serve.door import Door
from tests.samples_live import frame

PICTURES = Pictures(page=live_page, run=run_parts, metrics=live_metrics, script=drawing_script)


def site(board: Board) -> tuple[Site, str]:
    door = Door(frozenset({"localhost"}))
    session = door.exchanged(door.token)
    return Site(board, door, PICTURES, lambda: None), f"{door.cookie}={session}"


async def view(site: Site, cookie: str, send: Any) -> None:
    headers = [(b"host", b"localhost:1"), (b"cookie", cookie.encode())]
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/events",
        "query_string": b"",
        "headers": headers,
        "scheme": "http",
        "server": ("localhost", 1),
    }

    async def receive() -> dict[str, str]:
        await asyncio.sleep(3600)
        return {"type": "http.disconnect"}

    await site.app(scope, receive, send)


def test_a_slow_viewer_gets_the_newest_frame_and_nothing_is_queued() -> None:
    board = Board({"a": frame}, 1.0)
    served, cookie = site(board)
    sent: list[str] = []

    async def session() -> None:
        served._loop = asyncio.get_running_loop()
        taken, go_on = asyncio.Event(), asyncio.Event()

        async def send(message: dict[str, Any]) -> None:
            body = message.get("body", b"").decode()
            if "event: run" in body:
                sent.append(body)
                taken.set()
                await go_on.wait()

        viewer = asyncio.create_task(view(served, cookie, send))
        await taken.wait()
        for revision in range(1, 1001):
            board.latest["a"] = Shown(revision=revision, frame=replace(frame(), bytes=revision))
            board.changed()
            await asyncio.sleep(0)
        served.close()
        go_on.set()
        await asyncio.wait_for(viewer, 30)

    asyncio.run(session())
    assert len(sent) <= 2  # the first, and the newest where the goodbye did not come before it


def test_a_viewer_who_takes_all_sees_what_came_last_and_the_goodbye() -> None:
    frames = iter([frame(), replace(frame(), ended=True)])
    board = Board({"a": lambda: next(frames)}, 0.01)
    served, cookie = site(board)
    bodies: list[str] = []

    async def session() -> None:
        async def send(message: dict[str, Any]) -> None:
            bodies.append(message.get("body", b"").decode())
            if '"ended": true' in bodies[-1]:
                served.close()

        served.begin()
        await asyncio.wait_for(view(served, cookie, send), 30)

    asyncio.run(session())
    told = [json.loads(b.split("data: ")[1]) for b in bodies if b.startswith("event: run")]
    assert told[-1]["ended"] and "This run has ended" in told[-1]["parts"]["summary"]
    assert any(body.startswith("event: bye") for body in bodies)


def test_a_run_that_cannot_be_read_any_more_says_why() -> None:
    def gone() -> Frame:
        raise UsageError("there is no file night.db")

    def broken() -> Frame:
        raise ValueError("a mistake")

    board = Board({"gone": gone, "broken": broken}, 0.01)
    board.start()
    for reader in board._readers:
        reader.join(30)
    assert board.latest["gone"].failure == "there is no file night.db"
    assert board.latest["broken"].failure == "ValueError: a mistake"
    assert all(shown.over for shown in board.latest.values())
    shown = run_parts("gone", None, board.latest["gone"].failure)
    assert "there is no file night.db" in shown["parts"]["head"]
