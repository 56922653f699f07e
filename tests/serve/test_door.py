"""Tokens, cookies and where requests come from."""

from __future__ import annotations

import pytest

from memfit.errors import UsageError
from memfit.serve.address import address, is_address, listen, url
from memfit.serve.door import Door

NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
HERE = {"host": "localhost:8642"}


def test_a_token_opens_once_and_has_another_in_its_place() -> None:
    door = Door(NAMES)
    first = door.token
    session = door.exchanged(first)
    assert session is not None and door.knows_session(session)
    assert door.exchanged(first) is None
    assert door.token != first and door.exchanged(door.token) not in (None, session)
    assert door.knows_token(first) and not door.knows_session(first)
    for wrong in ("", first[:-1], "ü", first + "a"):
        assert not door.knows_token(wrong) and door.exchanged(wrong) is None
    assert not door.knows_session("")


@pytest.mark.parametrize(
    ("headers", "page", "refused"),
    [
        (HERE, True, False),
        ({"host": "127.0.0.1:1"}, False, False),  # through a tunnel: another port
        ({"host": "[::1]:8642"}, False, False),
        ({"host": "LOCALHOST:8642"}, False, False),
        ({}, False, True),
        ({"host": "evil.example"}, True, True),
        ({"host": "localhost.evil.example:8642"}, True, True),
        ({"host": "192.168.1.5:8642"}, True, True),
        ({**HERE, "origin": "http://localhost:8642"}, False, False),
        ({**HERE, "origin": "http://localhost:9999"}, False, True),
        ({**HERE, "origin": "http://evil.example"}, False, True),
        ({**HERE, "origin": "null"}, False, True),
        ({**HERE, "origin": ""}, False, True),
        ({**HERE, "sec-fetch-site": "same-origin"}, False, False),
        ({**HERE, "sec-fetch-site": "cross-site"}, False, True),
        ({**HERE, "sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"}, True, True),
        # a link in a chat is followed
        ({**HERE, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, True, False),
        ({**HERE, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, False, True),
    ],
)
def test_where_a_request_comes_from(headers: dict[str, str], page: bool, refused: bool) -> None:
    assert bool(Door(NAMES).refusal(headers, page=page)) is refused


@pytest.mark.parametrize("word", ["127.0.0.1:9000", ":9000", "localhost:0", "[::1]:80", "a-b.c:1"])
def test_addresses_are_told_from_pids_and_files(word: str) -> None:
    assert is_address(word)


@pytest.mark.parametrize("word", ["4711", "night.db", "a/b:1", "host:port", "a:1:2", ":123456"])
def test_what_is_no_address(word: str) -> None:
    assert not is_address(word)


def test_an_address_that_others_reach_needs_a_name() -> None:
    with pytest.raises(UsageError, match="--host"):
        address("0.0.0.0:8000")
    at = address("0.0.0.0:8000", ("Box.lan",))
    assert "box.lan" in at.names
    for wrong in ("a b", "http://x", "*", ""):
        with pytest.raises(UsageError, match="--host"):
            address(None, (wrong,))
    with pytest.raises(UsageError, match="no address"):
        address("localhost:99999")


def test_the_usual_port_gives_way_and_one_that_was_asked_for_does_not() -> None:
    at = address("localhost:0")
    with listen(at) as taken:
        port = taken.getsockname()[1]
        assert url(at, taken, "t") == f"http://localhost:{port}/?token=t"
        with pytest.raises(UsageError, match="Choose another port"):
            listen(address(f"127.0.0.1:{port}"))
    with listen(address(None)) as first, listen(address(None)) as second:
        assert first.getsockname() != second.getsockname()
