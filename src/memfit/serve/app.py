"""What is answered to a browser: the page, its stream of frames, and figures for Prometheus."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from memfit.model import Frame
from memfit.serve.board import Board
from memfit.serve.door import Door

_PAGE = Path(__file__).parent / "page"
_BEAT = 5.0  # seconds after which a viewer hears that memfit is still there
_MOST_STREAMS = 200
_TIMELY = 60.0  # seconds for a viewer to take a frame
METRICS = "text/plain; version=0.0.4; charset=utf-8"
_KINDS = {".css": "text/css", ".js": "text/javascript"}
_SAFE = {
    "content-security-policy": "default-src 'none'; script-src 'self'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


@dataclass(frozen=True, kw_only=True)
class Pictures:
    """How frames are shown: the whole page, one run for the page's script, and figures."""

    page: Callable[[str, Mapping[str, tuple[Frame | None, str]]], str]
    run: Callable[[str, Frame | None, str], dict[str, Any]]
    metrics: Callable[[Mapping[str, Frame]], str]
    script: Callable[[], bytes | None]  # packed, of what draws curves; None where it is missing


class Site:
    """The answers to all requests; nothing is answered to those whom the door refuses."""

    def __init__(
        self, board: Board, door: Door, pictures: Pictures, used: Callable[[], None]
    ) -> None:
        self._board = board
        self._door = door
        self._pictures = pictures
        self._used = used  # told when a token was used, so that there is a new one
        self._events: dict[str, tuple[int, bytes]] = {}  # as they are sent, made once for all
        self._viewers: set[asyncio.Event] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        routes = [
            Route("/", self._page),
            Route("/events", _Stream(self._stream)),
            Route("/metrics", self._metrics),
            Route("/plotly.js", self._plotly),
            *(Route(f"/{name}", self._file) for name in ("page.css", "page.js")),
        ]
        self.app: ASGIApp = _Guarded(Starlette(routes=routes), self)
        board.changed = self._wake

    def begin(self) -> None:
        """Begin to read, and take frames in the loop that runs."""
        self._loop = asyncio.get_running_loop()
        self._board.start()

    def close(self) -> None:
        """Say goodbye to all viewers."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._wake_all)

    def _wake_all(self) -> None:
        for event in self._viewers:
            event.set()

    def enter(self, scope: Scope) -> tuple[str, str | None]:
        """Why a request is refused, if it is; and the session that it is given, if one is."""
        request = Request(scope)
        path, headers = request.url.path, request.headers
        if refusal := self._door.refusal(headers, page=path == "/"):
            return refusal, None
        if self._door.knows_session(request.cookies.get(self._door.cookie, "")):
            return "", None
        token = request.query_params.get("token", "")
        if path == "/metrics":
            kind, _, given = headers.get("authorization", "").partition(" ")
            bearer = given.strip() if kind.lower() == "bearer" else ""
            if self._door.knows_token(bearer) or self._door.knows_token(token):
                return "", None
        if path == "/" and scope["method"] == "GET" and (session := self._door.exchanged(token)):
            self._used()
            return "", session
        return (
            "open the address that memfit has printed last: each works once, in one browser",
            None,
        )

    @property
    def cookie(self) -> str:
        return self._door.cookie

    async def _page(self, request: Request) -> Response:
        runs = {name: (shown.frame, shown.failure) for name, shown in self._board.latest.items()}
        template = (_PAGE / "page.html").read_text(encoding="utf-8")
        return _response(self._pictures.page(template, runs), "text/html")

    async def _file(self, request: Request) -> Response:
        file = _PAGE / request.url.path[1:]  # one of the routes
        return _response(file.read_text(encoding="utf-8"), _KINDS[file.suffix])

    async def _plotly(self, request: Request) -> Response:
        packed = await asyncio.to_thread(self._pictures.script)
        if packed is None:
            return PlainTextResponse("plotly is not installed", status_code=404)
        headers = {"cache-control": "private, max-age=86400", "vary": "accept-encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            headers["content-encoding"] = "gzip"
        else:
            packed = gzip.decompress(packed)
        return Response(packed, media_type="text/javascript", headers=headers)

    async def _metrics(self, request: Request) -> Response:
        latest = self._board.latest.items()
        frames = {name: shown.frame for name, shown in latest if shown.frame is not None}
        return _response(self._pictures.metrics(frames), METRICS)

    def _event(self, name: str) -> tuple[int, bytes]:
        """A run as it is sent to every viewer, and its revision."""
        shown = self._board.latest[name]
        if self._events.get(name, (-1,))[0] != shown.revision:
            told = json.dumps(self._pictures.run(name, shown.frame, shown.failure))
            self._events[name] = (shown.revision, f"event: run\ndata: {told}\n\n".encode())
        return self._events[name]

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Frames as server-sent events, as often as the viewer takes them."""
        if len(self._viewers) >= _MOST_STREAMS:
            await PlainTextResponse("there are too many viewers", 503)(scope, receive, send)
            return
        changed = asyncio.Event()
        changed.set()
        self._viewers.add(changed)
        gone = asyncio.create_task(_disconnected(receive))
        gone.add_done_callback(lambda _: changed.set())
        seen: dict[str, int] = {}
        try:
            await send(_head("text/event-stream"))
            await _sent(send, b"retry: 1000\n\n")
            while not self._closed:
                with suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), _BEAT)
                if gone.done():
                    return
                beat = not changed.is_set()
                changed.clear()
                for name in self._board.latest:
                    revision, told = self._event(name)
                    if seen.get(name) != revision:
                        seen[name] = revision
                        await _sent(send, told)
                if beat:
                    await _sent(send, b"event: beat\ndata: {}\n\n")
            await _sent(send, b"event: bye\ndata: {}\n\n")
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:  # it takes nothing: the kernel ends its connection
            return
        finally:
            self._viewers.discard(changed)
            gone.cancel()


class _Stream:
    """An endpoint that speaks for itself, to see how quickly a viewer takes what it is sent."""

    def __init__(self, answer: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "GET":
            await PlainTextResponse("Method Not Allowed", 405)(scope, receive, send)
        else:
            await self._answer(scope, receive, send)


class _Guarded:
    """An app behind a door: every path, also one that is not there, and every method."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app = app
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        refusal, session = self._site.enter(scope)
        added = {"cache-control": "no-store", **_SAFE}
        if session is not None:
            added["set-cookie"] = (
                f"{self._site.cookie}={session}; Path=/; HttpOnly; SameSite=Strict"
            )

        async def answer(message: Any) -> None:
            if message["type"] == "http.response.start":
                there = Headers(raw=message["headers"])
                message["headers"] = [
                    *message["headers"],
                    *((k.encode(), v.encode()) for k, v in added.items() if k not in there),
                ]
            await send(message)

        app = PlainTextResponse(f"memfit: {refusal}\n", 403) if refusal else self._app
        await app(scope, receive, answer)


def _response(text: str, kind: str) -> Response:
    return Response(text.encode(), media_type=kind)


def _head(kind: str) -> dict[str, Any]:
    headers = [(b"content-type", kind.encode()), (b"x-accel-buffering", b"no")]
    return {"type": "http.response.start", "status": 200, "headers": headers}


async def _sent(send: Send, body: bytes) -> None:
    message = {"type": "http.response.body", "body": body, "more_body": True}
    await asyncio.wait_for(send(message), _TIMELY)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
