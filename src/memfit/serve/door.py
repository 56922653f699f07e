"""Who may look at the live page: tokens that work once, cookies, and where a request comes from."""

from __future__ import annotations

import re
import secrets
from collections import deque
from collections.abc import Mapping
from hmac import compare_digest
from urllib.parse import urlsplit

_BYTES = 32
_MOST = 1000  # tokens and cookies that are remembered
_PORT = re.compile(r":\d{1,5}$")


class Door:
    """Decides about each request by its headers.

    A page on another site can make a browser send requests here, also under a name of its own that
    it lets point to this machine. So it counts by which name memfit was asked, and from where.
    """

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self.cookie = f"memfit_{secrets.token_hex(4)}"  # of two servers on a host, each has its own
        self.token = secrets.token_urlsafe(_BYTES)  # that opens the page, once
        self._issued: deque[str] = deque([self.token], maxlen=_MOST)
        self._sessions: deque[str] = deque(maxlen=_MOST)

    def refusal(self, headers: Mapping[str, str], *, page: bool) -> str:
        """Why a request is refused, whoever asks; empty where it is not. `page` is the page."""
        host = headers.get("host", "").lower()
        if _PORT.sub("", host) not in self._names:
            return "memfit was asked under another name: add --host NAME to allow it"
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin.lower()).netloc != host:
            return "a page from elsewhere cannot read this"
        site = headers.get("sec-fetch-site", "none")
        opened = page and headers.get("sec-fetch-mode") == "navigate"
        if site not in ("none", "same-origin") and not opened:
            return "a page from elsewhere cannot read this"
        return ""

    def exchanged(self, token: str) -> str | None:
        """A session for a token that was not used yet, which is then used; else None."""
        if not _same(token, self.token):
            return None
        self.token = secrets.token_urlsafe(_BYTES)
        self._issued.append(self.token)
        self._sessions.append(secrets.token_urlsafe(_BYTES))
        return self._sessions[-1]

    def knows_session(self, cookie: str) -> bool:
        """Whether a cookie was given for a token."""
        return any(_same(cookie, known) for known in self._sessions)

    def knows_token(self, token: str) -> bool:
        """Whether a token was printed, used or not: enough for figures, not for the page."""
        return any(_same(token, known) for known in self._issued)


def _same(given: str, known: str) -> bool:
    """Compared in a time that says nothing."""
    return compare_digest(given.encode(errors="replace"), known.encode())
