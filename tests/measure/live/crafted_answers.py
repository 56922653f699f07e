"""A process that answers `memfit explain` with anything: run as a program, with the way to do so.

It listens under its own number, or under that of another process, and prints a line when it does.
Only the standard library is used, so that it starts at once.
"""

from __future__ import annotations

import copy
import json
import os
import random
import socket
import sys
import time
from typing import Any

ARRAYS = {
    "holder": "model.buffer",
    "nbytes": 2**20,
    "count": 2,
    "views": 0,
    "dtype": "float32",
    "shape": [4, 65536],
    "library": "numpy",
    "device": "cpu",
    "memory": "shared",
    "mapping": "/dev/shm/\x1b[31mred",
    "extents": [[2**30, 2**19], [2**31, 2**19]],
    "small_bytes": 0,
    "also": ["train().obs"],
}
OBJECTS = {
    "holder": "agent\x1b]0;title\x07",
    "kind": "run",
    "nbytes": 300,
    "small_bytes": 100,
    "large_bytes": 200,
    "objects": 3,
    "elements": 2,
}
DUPLICATE = {"kind": "same bytes", "holders": ["a", "b"], "saved_bytes": 5, "evidence": "told"}
WALK = {
    "seconds": 0.2,
    "cpu_seconds": 0.1,
    "longest_hold_seconds": 0.01,
    "objects": 3,
    "added_bytes": 2**21,
    "complete": False,
}
GOOD: dict[str, Any] = {
    "schema": 1,
    "pid": 1,
    "arrays": [ARRAYS],
    "python": [OBJECTS],
    "duplicates": [DUPLICATE],
    "pools": {"malloc": {"free_bytes": 10, "allocator": "glibc"}, "torch": {}},
    "walk": WALK,
}
ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 2**62, 2**63, 2**64, 10**400, 1.5, 1e308, float("nan"), float("inf")),
    *("", "x", "\x1b[2J", "\ud800", "x" * 70_000, [], [[]], {}, {"x": 1}, [1], [[1]], [[1, 2, 3]]),
    *(
        [[0, 2**62]],
        [[2**47, 5]],
        [[-5, 10]],
        [[5, -10]],
        [["a", "b"]],
        [[1, n] for n in range(20_000)],
    ),
)
_NONSENSE = (
    *(b"", b"\0", b"null", b"true", b"7", b'"x"', b"[]", b"{}", b"\xff\xfe", b"{", b"[" * 300_000),
    *(b'{"error": 5}', b'{"error": "\\u001b[2J"}', b'{"error": "x", "again": true}'),
    *(b"9" * 10_000, b'{"a": 1}{"b": 2}', b'{"arrays": ' * 50_000),
)


def answer(seed: int) -> bytes:
    """What a process could say: nonsense, or something like an answer."""
    draw = random.Random(seed)
    if draw.random() < 0.15:
        return draw.choice(_NONSENSE)
    found: dict[str, Any] = json.loads(json.dumps(GOOD))
    for _ in range(draw.choice((0, 1, 1, 2, 5))):
        if _change(found, draw):
            break
    text = json.dumps(found).encode()
    if draw.random() < 0.1:
        text = text[: draw.randrange(len(text))]
    if draw.random() < 0.1:
        at = draw.randrange(max(1, len(text)))
        text = text[:at] + bytes([draw.randrange(256)]) + text[at + 1 :]
    return text


def _change(found: Any, draw: random.Random) -> bool:
    """Put something odd in the place of a value, take it away or have it often; whether the last.

    What is there often is not changed again: it would become millions.
    """
    while True:
        if isinstance(found, dict):
            keys: list[Any] = list(found)
        elif isinstance(found, list):
            keys = list(range(len(found)))
        else:
            return False
        if not keys:
            return False
        key = draw.choice(keys)
        if isinstance(found[key], (dict, list)) and draw.random() < 0.8:
            found = found[key]
            continue
        way = draw.random()
        if way < 0.15:
            del found[key]
        elif way < 0.25 and isinstance(found, list):
            found *= max(1, 6000 // len(found))
            return True
        else:
            found[key] = copy.deepcopy(draw.choice(ODD))
        return False


def main(way: str, pid: str = "", first: str = "0") -> None:
    server = socket.socket(socket.AF_UNIX)
    server.bind(f"\0memfit.{int(pid or 0) or os.getpid()}")
    server.listen(16)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    seed = int(first)
    while True:
        client, _ = server.accept()
        with client:
            client.recv(65536)
            try:
                if way == "silent":
                    time.sleep(3600)
                elif way == "slow":
                    while True:
                        client.sendall(b" ")
                        time.sleep(0.05)
                elif way == "endless":
                    for _ in range(1500):
                        client.sendall(b"[0, 1]  " * 2**17)
                else:
                    client.sendall(answer(seed))
            except OSError:  # whoever asked has gone
                pass
        seed += 1


if __name__ == "__main__":
    main(*sys.argv[1:])
