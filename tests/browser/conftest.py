"""A real browser: Chromium of the system's packages, driven by playwright."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """Chromium without a window; what needs it is skipped where it is missing.

    It ends with the tests of this folder: while playwright is there, asyncio runs nothing else in
    this thread, and the parser of Python 3.11 fails.
    """
    driver = pytest.importorskip("playwright.sync_api", reason="needs playwright (extra dev)")
    if not CHROMIUM.exists():
        pytest.skip("needs Chromium: make install-browser")
    with driver.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=str(CHROMIUM),
            args=["--no-sandbox", "--disable-dev-shm-usage"],
            timeout=100_000,
        )
        yield browser
        browser.close()
