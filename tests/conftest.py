"""Shared fixtures. `pytest --renew` writes the golden outputs anew instead of comparing them."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# A busy machine is slow, which is no failure.
settings.register_profile("memfit", deadline=None)
settings.load_profile("memfit")
# A shell starts what runs in the background with Ctrl-C ignored, nohup ignores SIGHUP, and children
# inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--renew", action="store_true", help="write the golden outputs anew")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with the file of that name in the test's `golden` directory."""
    directory = Path(str(request.path)).parent / "golden"

    def compare(name: str, text: str) -> None:
        file = directory / name
        if request.config.getoption("--renew"):
            directory.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        assert file.exists(), f"{name} is missing: run pytest --renew"
        assert text == file.read_text(encoding="utf-8"), f"{name} changed: run pytest --renew"

    return compare
