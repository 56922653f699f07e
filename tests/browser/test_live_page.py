"""The live page in a real browser: it updates, connects again, and lets nobody in."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.serve.watching import HOSTILE, growing, watching

pytest.importorskip("playwright.sync_api")
pytest.importorskip("uvicorn")

PATIENCE = 60_000.0  # milliseconds
SHOTS = os.environ.get("MEMFIT_SCREENSHOTS", "")  # a folder to look at what was seen


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page that fails the test where its console shows an error, or a request leaves it."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on("dialog", lambda dialog: wrong.append(f"a dialog: {dialog.message}"))
    page.on(
        "request",
        lambda asked: (
            None
            if re.match(r"http://127\.0\.0\.1:|data:|blob:", asked.url)
            else wrong.append(asked.url)
        ),
    )
    page.wrong = wrong
    yield page
    context.close()


def shot(page: Any, name: str) -> None:
    if SHOTS:
        page.screenshot(path=str(Path(SHOTS) / f"live-{name}.png"), full_page=True)


def text_of(page: Any, part: str) -> str:
    return str(page.inner_text(f"[data-part={part}]"))


def wait_until(page: Any, condition: str) -> None:
    """Asked again and again from outside: the page's policy lets nobody evaluate in it."""
    end = time.monotonic() + PATIENCE / 1000
    while not page.evaluate(condition):
        assert time.monotonic() < end, f"it does not come to {condition}"
        page.wait_for_timeout(100)


@pytest.mark.timeout(300)
def test_it_updates_is_drawn_and_fits_a_phone(page: Any) -> None:
    with growing(HOSTILE) as process:
        words = (str(process.pid), "--every", "200ms", "--threads", "4", "--limit", "64GiB")
        with watching(*words) as server:
            page.goto(server.url)
            wait_until(page, "document.querySelector('.plot .main-svg') !== null")
            assert page.url == f"http://127.0.0.1:{server.port}/"  # the token is gone from it
            wait_until(page, "document.getElementById('state').textContent.startsWith('live')")
            first = text_of(page, "tiles")
            wait_until(
                page,
                "document.querySelector('[data-part=tiles]').innerText !== " + repr(first),
            )
            assert "<script>alert(1)</script>" in text_of(page, "processes")
            assert "met" in text_of(page, "targets")
            grounds = []
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                for width in (1280, 390):
                    page.set_viewport_size({"width": width, "height": 844})
                    page.wait_for_timeout(500)
                    assert page.evaluate("document.documentElement.scrollWidth") <= width
                    shot(page, f"{width}-{scheme}")
                grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
            assert grounds[0] != grounds[1]
            process.kill()
            process.wait(60)
            wait_until(page, "document.getElementById('state').textContent === 'ended'")
            assert "This run has ended" in text_of(page, "summary")
            assert page.wrong == []
            page.set_viewport_size({"width": 1280, "height": 900})
            page.emulate_media(color_scheme="light")
            shot(page, "ended")
            # memfit is gone, and the page says so, with what it saw last.
            server.end()
            wait_until(page, "document.getElementById('state').className === 'lost'")
            assert "This run has ended" in text_of(page, "summary")


@pytest.mark.timeout(300)
def test_it_connects_again_by_itself(page: Any) -> None:
    with growing() as process, watching(str(process.pid), "--every", "200ms") as server:
        page.goto(server.url)
        wait_until(page, "document.getElementById('state').className === 'live'")
        page.context.set_offline(True)
        server.process.send_signal(signal.SIGSTOP)  # and nothing comes through what is open
        wait_until(page, "document.getElementById('state').className === 'lost'")
        server.process.send_signal(signal.SIGCONT)
        page.context.set_offline(False)
        wait_until(page, "document.getElementById('state').className === 'live'")


@pytest.mark.timeout(300)
def test_a_page_from_elsewhere_reads_nothing(page: Any, tmp_path: Path) -> None:
    """Another server of this machine, whose page the user opens while memfit's cookie is there."""
    with growing() as process, watching(str(process.pid)) as server:
        page.goto(server.url)
        page.goto("about:blank")
        read = """async (url) => {
            const read = async (options) => (await fetch(url, options)).status;
            try { return await read({credentials: "include"}); } catch { return "refused"; }
        }"""
        for path in ("", "events", "metrics", "page.js"):
            assert page.evaluate(read, f"http://127.0.0.1:{server.port}/{path}") == "refused"
        page.goto(f"http://127.0.0.1:{server.port}/")
        assert page.inner_text("h1")


@pytest.mark.timeout(300)
def test_without_script_it_shows_the_same(browser: Any) -> None:
    with growing() as process, watching(str(process.pid), "--every", "200ms") as server:
        server.wait_for_a_frame()
        context = browser.new_context(java_script_enabled=False)
        page = context.new_page()
        page.goto(server.url, timeout=PATIENCE)
        assert "Within its limit" in page.inner_text("h1")
        assert page.locator(".slices i").count() >= 1
        assert str(process.pid) in page.inner_text("[data-part=processes]")
        shot(page, "no-script")
        context.close()
