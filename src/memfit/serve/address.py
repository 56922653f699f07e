"""Where the live page is served: an address of this machine, and the names it may be asked by."""

from __future__ import annotations

import contextlib
import ipaddress
import re
import socket
from dataclasses import dataclass

from memfit.errors import UsageError

PORT = 8642  # where nobody says another; any that is free where that is taken
_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]*):(?P<port>\d{1,5})")
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_UNSENT_MS = 30_000  # a viewer that takes nothing for so long has vanished


@dataclass(frozen=True, kw_only=True)
class Address:
    """A host and a port to listen on; `names` are what a browser may call it."""

    host: str = "127.0.0.1"
    port: int | None = None  # any that is free if 0; the usual one, or any, if None
    names: frozenset[str] = frozenset(_LOOPBACK)


def is_address(word: str) -> bool:
    """Whether a word of the command line is HOST:PORT or :PORT."""
    return _ADDRESS.fullmatch(word) is not None


def address(word: str | None, hosts: tuple[str, ...] = ()) -> Address:
    """HOST:PORT as it is typed. What other machines can reach is refused unless names are given."""
    names = frozenset(_LOOPBACK) | {_name(host) for host in hosts}
    if word is None:
        return Address(names=names)
    found = _ADDRESS.fullmatch(word)
    if found is None or int(found["port"]) > 65535:
        raise UsageError(f"{word!r} is no address: write HOST:PORT, such as 127.0.0.1:{PORT}")
    host = found["host"].strip("[]") or "127.0.0.1"
    if not hosts and not _is_loopback(host):
        raise UsageError(
            f"{word} is reached from other machines: say with --host NAME by which name they will "
            f"ask for it, or serve 127.0.0.1:{PORT} and use an SSH tunnel"
        )
    return Address(host=host, port=int(found["port"]), names=names)


def _name(host: str) -> str:
    """The name of a host as it stands in a browser's request, without a port."""
    name = host.strip().lower()
    if not re.fullmatch(r"[a-z0-9_.-]+|\[[0-9a-f:.]+\]", name):
        raise UsageError(f"--host {host!r} is no name of a host: give one such as box.lan")
    return name


def _is_loopback(host: str) -> bool:
    return all(ipaddress.ip_address(ip).is_loopback for _, (ip, _) in _resolved(host, 0))


def _resolved(host: str, port: int) -> list[tuple[socket.AddressFamily, tuple[str, int]]]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"there is no host {host!r} to serve on: {error}") from None
    return [(family, (str(to[0]), port)) for family, _, _, _, to in found]


def listen(at: Address) -> socket.socket:
    """A socket that listens there."""
    wanted = PORT if at.port is None else at.port
    family, place = _resolved(at.host, wanted)[0]
    with contextlib.ExitStack() as undo:
        listener = undo.enter_context(socket.socket(family, socket.SOCK_STREAM))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # The connections inherit it: the kernel ends those of viewers that have vanished.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNSENT_MS)
        try:
            listener.bind(place)
        except OSError as error:
            if at.port is not None:
                raise UsageError(
                    f"cannot serve on {at.host}:{wanted}: {error.strerror}. Choose another port, "
                    "or 0 for any that is free"
                ) from None
            listener.bind((place[0], 0))
        listener.listen(128)
        undo.pop_all()
        return listener


def url(at: Address, listener: socket.socket, token: str) -> str:
    """What to open in a browser, once."""
    own = sorted(at.names - set(_LOOPBACK))
    host = own[0] if own else f"[{at.host}]" if ":" in at.host else at.host
    return f"http://{host}:{listener.getsockname()[1]}/?token={token}"
