"""Asks a listening process who holds its memory, and attaches a listener where there is none."""

from __future__ import annotations

import json
import os
import reprlib
import socket
import struct
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memfit.errors import Unsupported, UsageError
from memfit.measure.kernel.proc import text
from memfit.units import format_bytes

_INSIDE = Path(__file__).resolve().parents[2] / "inside"
_TRIES = 3
LONGEST_ANSWER = 2**24  # of 300,000 large arrays; one of nonsense takes thirty times as much
NO_ROLES: Mapping[str, str] = {}
_AGAIN_SECONDS = 0.05
_ATTACH_SECONDS = 10.0
_START = "start it with `memfit run -- ...`, or call memfit.listen() in it"

# What an attached Python runs: the same as the customization of Pythons below `memfit run`.
_SCRIPT = """\
try:
    import sys
    if "_memfit_inside" not in sys.modules:
        package = type(sys)("_memfit_inside")
        package.__path__ = [{inside!r}]
        sys.modules["_memfit_inside"] = package
    from _memfit_inside.listener import listen
    listen()
except BaseException:
    pass
"""


class NoAnswer(Exception):
    """A process that listens did not say what it holds; the message says why not."""


def ask(
    pid: int, *, duplicates: bool, timeout: float, roles: Mapping[str, str] = NO_ROLES
) -> dict[str, Any] | None:
    """A process's own account of its memory, or None where nobody listens.

    `roles` says what classes are in a training. The fields of the answer are told in
    `memfit.inside`; whoever gets it checks them. Raises NoAnswer.
    """
    request = {"want": "holders", "duplicates": duplicates, "roles": dict(roles)}
    until = time.monotonic() + timeout
    for _ in range(_TRIES):  # one that forks, or is just starting its thread, is asked again
        try:
            client = _connected(pid, until - time.monotonic())
            if client is None:
                return None
            with client:
                client.sendall(json.dumps(request).encode() + b"\n")
                found = json.loads(_everything(client, until))
        except (TimeoutError, BlockingIOError):  # or too many others wait for it
            raise NoAnswer(f"it did not answer within {timeout:.2g} s") from None
        except (OSError, ValueError, RecursionError):
            raise NoAnswer("what it answered is no JSON, or has no end") from None
        if not isinstance(found, dict):
            raise NoAnswer("what it answered is no account of its memory")
        if "error" not in found:
            return found
        if found.get("again") is not True:
            raise NoAnswer(f"it could not tell ({reprlib.repr(found['error'])})")
        time.sleep(_AGAIN_SECONDS)
    raise NoAnswer("it was interrupted each time, since it starts processes")


def listens(pid: int) -> bool:
    """Whether a process can be asked."""
    try:
        client = _connected(pid, 1.0)
    except (NoAnswer, OSError):
        return False
    if client is None:
        return False
    client.close()
    return True


def attach(pid: int) -> None:
    """Make a running Python listen, by the interpreter's own way to run code in another process.

    That is there from Python 3.14 on, and must be the same version on both sides.
    """
    if listens(pid):
        return
    execute = getattr(sys, "remote_exec", None)
    if execute is None:
        version = ".".join(str(part) for part in sys.version_info[:2])
        raise Unsupported(
            f"cannot look inside process {pid}: memfit runs on Python {version} and attaching "
            f"needs 3.14 on both sides: {_START}"
        )
    number, name = tempfile.mkstemp(prefix="memfit-", suffix=".py")
    try:
        with os.fdopen(number, "w") as file:
            file.write(_SCRIPT.format(inside=str(_INSIDE)))
        Path(name).chmod(0o644)  # the target may be another user's, if we are root
        _execute(execute, pid, name)
        _wait_until_it_listens(pid)
    finally:
        Path(name).unlink(missing_ok=True)


def _execute(execute: Any, pid: int, script: str) -> None:
    try:
        execute(pid, script)
    except PermissionError:
        raise UsageError(
            f"may not look inside process {pid}: it is another user's, or tracing is not allowed "
            f"here: run memfit as root, or {_START}"
        ) from None
    except ProcessLookupError:
        raise UsageError(f"process {pid} has ended: give one that runs") from None
    except (RuntimeError, OSError, ValueError) as error:
        raise Unsupported(
            f"cannot look inside process {pid} ({error}): it must be a Python of this version: "
            f"{_START}"
        ) from None


def _wait_until_it_listens(pid: int) -> None:
    until = time.monotonic() + _ATTACH_SECONDS
    while not listens(pid):
        if time.monotonic() > until:
            raise Unsupported(
                f"process {pid} did not answer within {_ATTACH_SECONDS:.0f} s: its main thread is "
                f"busy outside Python: try again, or {_START}"
            )
        if not Path(f"/proc/{pid}").exists():
            raise UsageError(f"process {pid} has ended: give one that runs")
        time.sleep(_AGAIN_SECONDS)


def _everything(client: socket.socket, until: float) -> bytearray:
    found = bytearray()
    while True:
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        client.settimeout(left)
        part = client.recv(1 << 20)
        if not part:
            return found
        found += part
        if len(found) > LONGEST_ANSWER:
            raise NoAnswer(f"its answer is longer than {format_bytes(LONGEST_ANSWER)}")


def _connected(pid: int, seconds: float) -> socket.socket | None:
    """A connection to this process itself, not to one of the same number in another container.

    None where nobody listens.
    """
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        client.settimeout(max(0.001, seconds))
        client.connect(f"\0memfit.{_own_number(pid)}")
        found = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        other = struct.unpack("3i", found)[0]
        if other != pid:
            raise NoAnswer(f"process {other} has taken the name under which it would answer")
    except ConnectionRefusedError:
        client.close()
        return None
    except BaseException:
        client.close()
        raise
    return client


def _own_number(pid: int) -> int:
    """The number that a process knows itself by, which is another one in a container."""
    for line in text(f"/proc/{pid}/status").splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    return pid
