"""A user at the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.user import User


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    """Somebody with a folder of scripts and an empty folder for temporary files."""
    somebody = User(tmp_path)
    yield somebody
    somebody.leave()
