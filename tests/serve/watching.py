"""A real `memfit watch --serve` over a real process, and requests to it as a browser makes them."""

from __future__ import annotations

import http.client
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPResponse
from pathlib import Path
from typing import IO

PATIENCE = 60.0
HOSTILE = "<script>alert(1)</script>\x1b[2J&amp;\"'"
_GROWS = (
    "import sys, time\n"
    "held = []\n"
    "print('ready', flush=True)\n"
    "while True:\n"
    "    held.append(b'x' * 2**18)\n"
    "    time.sleep(0.05)\n"
    "    if len(held) == 400: held.clear()\n"
)


@contextmanager
def growing(*words: str) -> Iterator[subprocess.Popen[str]]:
    """A process that takes more and more memory, up to 100 MiB, again and again."""
    command = [sys.executable, "-S", "-c", _GROWS, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    text: str


class Watching:
    """A server, and the last address that it has printed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        self.out: IO[str] = process.stdout
        self.url = ""
        self.next_url()
        self.port = int(self.url.split(":")[2].split("/")[0])

    def next_url(self) -> str:
        """Wait for the next address."""
        while line := self.out.readline():
            if found := re.search(r"http://\S+", line):
                self.url = found.group()
                return self.url
        raise AssertionError("it has ended")

    @property
    def token(self) -> str:
        return self.url.split("token=")[1]

    def get(self, path: str = "/", method: str = "GET", host: str = "", **headers: str) -> Answer:
        """One request, with headers whose names have `_` for `-`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.putrequest(method, path, skip_host=True)
            connection.putheader("Host", host or f"127.0.0.1:{self.port}")
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            connection.endheaders()
            answer = connection.getresponse()
            text = answer.read().decode()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, text)
        finally:
            connection.close()

    def cookie(self) -> str:
        """Open the page as a browser does, and take its cookie."""
        answer = self.get(f"/?token={self.token}")
        assert answer.status == 200, answer.text
        self.next_url()
        return answer.headers["set-cookie"].split(";")[0]

    def wait_for_a_frame(self) -> None:
        """Until something was read: on a busy machine that takes a while."""
        end = time.monotonic() + PATIENCE
        while "memfit_ended" not in self.get(f"/metrics?token={self.token}").text:
            assert time.monotonic() < end, "nothing is read"
            time.sleep(0.05)

    def stream(self, cookie: str, buffer: int = 0) -> Stream:
        """Begin to look at frames."""
        return Stream(self.port, cookie, buffer)

    def end(self) -> tuple[float, int, str]:
        """Ctrl-C: how long it takes, with which code, and what it says."""
        self.process.send_signal(signal.SIGINT)
        began = time.monotonic()
        code = self.process.wait(PATIENCE)
        return time.monotonic() - began, code, self.out.read()


class Stream:
    """A viewer's connection, from which events are read when it pleases."""

    def __init__(self, port: int, cookie: str, buffer: int) -> None:
        self.socket = socket.socket()
        if buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(("127.0.0.1", port))
        head = f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\n\r\n"
        self.socket.sendall(head.encode())
        self._answer: HTTPResponse | None = None

    def event(self) -> tuple[str, str]:
        """The next event and its data."""
        if self._answer is None:
            self._answer = HTTPResponse(self.socket)
            self._answer.begin()
            assert self._answer.status == 200
        kind = ""
        while line := self._answer.readline().decode():
            if line.startswith("event: "):
                kind = line[7:].strip()
            elif line.startswith("data: "):
                return kind, line[6:]
        return "", ""

    def close(self) -> None:
        if self._answer is not None:
            self._answer.close()
        self.socket.close()


@contextmanager
def watching(*words: str, cwd: Path | None = None) -> Iterator[Watching]:
    """`memfit watch ... --serve` on any free port."""
    command = [sys.executable, "-m", "memfit", "watch", *words, "--serve", "127.0.0.1:0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=cwd
    ) as process:
        try:
            yield Watching(process)
        finally:
            process.kill()
