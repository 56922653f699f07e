"""Messages between a training and its workers: a kind, some bytes, and file descriptors."""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

_HEAD = struct.Struct("<QBBI")
# How often a waiting side looks whether the other is still there.
_LOOK_SECONDS = 1


class Late(Exception):
    """Nothing came within the time that was given."""


class Channel:
    """One end of a socket pair. Receiving may be interrupted and goes on where it was.

    Messages are numbered, and an answer has the number of what it answers: after an interruption
    nobody knows how much was asked and answered.
    """

    def __init__(self, end: socket.socket) -> None:
        self.asked = 0  # the number of the last message that is to be answered
        self._end = end
        self._have = bytearray()
        end.setblocking(True)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", _LOOK_SECONDS, 0))

    def close(self) -> None:
        self._end.close()

    def ask(self, kind: int, payload: bytes | bytearray = b"", fds: tuple[int, ...] = ()) -> None:
        """Send a message that is to be answered."""
        self.asked += 1
        self.send(self.asked, kind, payload, fds)

    def answer(
        self, seconds: float | None, alive: Callable[[], bool], wanted: int | None = None
    ) -> tuple[int, bytearray, list[int]]:
        """The answer to the last message; one that nobody waited for is passed over.

        One of the `wanted` kind is given whatever it answers.
        """
        while True:
            number, kind, payload, fds = self.recv(seconds, alive)
            if number == self.asked or kind == wanted:
                return kind, payload, fds
            for fd in fds:
                os.close(fd)

    def send(
        self, number: int, kind: int, payload: bytes | bytearray, fds: tuple[int, ...] = ()
    ) -> None:
        """Send a message as a whole."""
        self._end.sendall(_HEAD.pack(number, kind, len(fds), len(payload)) + payload)
        if fds:
            socket.send_fds(self._end, [b"F"], list(fds))

    def recv(
        self, seconds: float | None = None, alive: Callable[[], bool] | None = None
    ) -> tuple[int, int, bytearray, list[int]]:
        """The next message; EOFError where the other side is gone."""
        until = None if seconds is None else time.monotonic() + seconds
        self._fill(_HEAD.size, until, alive)
        number, kind, n_fds, size = _HEAD.unpack_from(self._have)
        if size:
            self._fill(_HEAD.size + size, until, alive)
        fds: list[int] = []
        while n_fds and not fds:
            try:
                _, fds, _, _ = socket.recv_fds(self._end, 1, n_fds)
            except BlockingIOError:
                continue
        payload, self._have = self._have[_HEAD.size :], bytearray()
        return number, kind, payload, fds

    def _fill(self, size: int, until: float | None, alive: Callable[[], bool] | None) -> None:
        while len(self._have) < size:
            try:
                more = self._end.recv(min(size - len(self._have), 1 << 20))
            except BlockingIOError:
                if alive is not None and not alive():
                    raise EOFError from None
                if until is not None and time.monotonic() > until:
                    raise Late from None
                continue
            except ConnectionResetError:
                raise EOFError from None
            if not more:
                raise EOFError
            self._have += more


def pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)


def readable(fd: int, seconds: float = 0.0) -> bool:
    """Whether a descriptor has something to read; a pidfd has when its process ended."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    found: list[Any] = poll.poll(max(0.0, seconds) * 1000)
    return bool(found)
