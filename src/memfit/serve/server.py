"""Serves the live page until Ctrl-C, on a socket that listens already."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import FrameType

import uvicorn

from memfit.model import Frame
from memfit.serve.address import Address, listen, url
from memfit.serve.app import Pictures, Site
from memfit.serve.board import Board
from memfit.serve.door import Door

_MOST_CONNECTIONS = 400
_GOODBYE = 1  # seconds for viewers to hear it


def serve(
    runs: Mapping[str, Callable[[], Frame]],
    at: Address,
    pictures: Pictures,
    *,
    seconds: float,
    tell: Callable[[str, bool], None],
) -> dict[str, Frame]:
    """Serve runs by their names until Ctrl-C; the last frame of each.

    `tell` is given each address to open, and whether it is the first.
    """
    listener = listen(at)
    door = Door(at.names)
    board = Board(runs, seconds)
    site = Site(board, door, pictures, lambda: tell(url(at, listener, door.token), False))
    tell(url(at, listener, door.token), True)
    try:
        with suppress(KeyboardInterrupt):  # that is how somebody stops watching
            _Server(site).run([listener])
    finally:
        listener.close()
        board.leave()
    return {name: shown.frame for name, shown in board.latest.items() if shown.frame is not None}


class _Server(uvicorn.Server):
    """One that says goodbye to its viewers before it ends."""

    def __init__(self, site: Site) -> None:
        config = uvicorn.Config(
            site.app,
            http="h11",
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=_GOODBYE,
        )
        super().__init__(config)
        self._site = site

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._site.begin()
        await super().startup(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self._site.close()
