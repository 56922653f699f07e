"""Pages in a real browser: they draw, follow clicks, change their theme, and reach nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from memfit import render
from memfit.render import to_html
from tests.render.html.hostile import NAMES, TARGET, hostile_plan
from tests.render.html.test_page import plan_page, result_page
from tests.render.test_golden import RESULTS
from tests.samples import ppo_plan
from tests.samples_live import FORECAST, trace

if TYPE_CHECKING:
    from playwright.sync_api import Page

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
SHOWN = re.findall(
    r"pictures/report-([a-z-]+)\.png", (PICTURES.parent / "reports.md").read_text(encoding="utf-8")
)
_SLOW = 90_000  # milliseconds: other work on the machine is no failure
_COMPOSITION = "document.querySelector('[data-picture=composition]')"
_PRESSED = "document.querySelector('[data-for=composition] [aria-pressed=true]').textContent"
pytestmark = pytest.mark.timeout(300)


@dataclass
class Opened:
    """A page in the browser, with what it said and asked for since."""

    page: Page
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def evaluate(self, script: str) -> Any:
        return self.page.evaluate(script)

    def is_quiet(self) -> bool:
        """Whether nothing was complained of, and nothing but the file itself was asked for."""
        assert self.said == []
        assert [url for url in self.asked if not url.startswith("file://")] == []
        assert len(self.asked) == 1
        return True


Open = Callable[..., Opened]


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Show a page as somebody who double-clicks its file."""
    contexts = []

    def open_it(text: str, *, width: int = 1280, **settings: Any) -> Opened:
        file = tmp_path / "page.html"
        file.write_text(text, encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": 900}, **settings)
        contexts.append(context)
        context.set_default_timeout(_SLOW)
        opened = Opened(context.new_page())
        opened.page.on("console", lambda said: opened.said.append(said.text))
        opened.page.on("pageerror", lambda error: opened.said.append(str(error)))
        opened.page.on("dialog", lambda dialog: opened.said.append(dialog.message))
        opened.page.on("request", lambda request: opened.asked.append(request.url))
        opened.page.goto(file.as_uri())
        return opened

    yield open_it
    for context in contexts:
        context.close()


def drawn(opened: Opened) -> Opened:
    """Wait until all pictures are drawn."""
    opened.page.wait_for_selector("html[data-drawn=yes]", state="attached")
    return opened


def root_of(opened: Opened) -> str:
    """The title of what the picture of components shows."""
    return str(
        opened.evaluate("document.querySelector('[data-picture=composition]').data[0].labels[0]")
    )


def pressed(opened: Opened) -> list[str]:
    chosen = opened.page.locator('[data-for="composition"] button[aria-pressed="true"]')
    return chosen.all_inner_texts()


def text_of(opened: Opened, selector: str) -> str:
    return " ".join(opened.page.locator(selector).all_text_contents())


def middle(opened: Opened, selector: str) -> tuple[float, float]:
    place = opened.page.locator(selector).first
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def text_colour(opened: Opened) -> Any:
    return opened.evaluate(
        "getComputedStyle(document.querySelector('[data-picture=moments] .xtick text')).fill"
    )


def test_a_plan_draws_switches_follows_clicks_and_changes_its_theme(open_page: Open) -> None:
    opened = drawn(open_page(plan_page(ppo_plan()), color_scheme="light"))
    page = opened.page
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert root_of(opened).startswith("update.minibatch: 357 MiB")
    # The choice of a moment.
    page.get_by_role("button", name="rollout", exact=True).click()
    assert root_of(opened).startswith("rollout: 262 MiB")
    assert pressed(opened) == ["rollout"]
    # A click on a bar of another picture, and what is said where it points.
    x, y = middle(opened, "[data-picture=moments] .barlayer .trace .point path")
    page.mouse.move(x - 3, y)
    page.mouse.move(x, y)
    page.wait_for_selector("[data-picture=moments] .hoverlayer .hovertext")
    assert "226 MiB" in text_of(opened, "[data-picture=moments] .hoverlayer")
    page.mouse.click(x, y)
    page.wait_for_function(f"{_PRESSED} == 'start'")
    assert root_of(opened).startswith("start: 226 MiB")
    # The other theme, for words and pictures.
    before = text_colour(opened)
    page.locator("#theme").click()
    assert opened.evaluate("document.documentElement.dataset.theme") == "dark"
    page.wait_for_function(
        "before => getComputedStyle(document.querySelector("
        "'[data-picture=moments] .xtick text')).fill != before",
        arg=before,
    )
    assert opened.is_quiet()


@pytest.mark.slow
def test_a_timeline_leads_what_it_consists_of(open_page: Open) -> None:
    opened = drawn(open_page(result_page("explain-recording")))
    page = opened.page
    assert pressed(opened) == ["120.0 s"]
    opened.page.locator("[data-picture=timeline] .nsewdrag").first.scroll_into_view_if_needed()
    box = page.locator("[data-picture=timeline] .nsewdrag").first.bounding_box()
    assert box is not None
    # At 44 of 120 seconds, on the curve: 320 of 800 MiB.
    x, y = box["x"] + box["width"] * 44 / 120, box["y"] + box["height"] * (1 - 320 / 800)
    page.mouse.move(x - 3, y)
    page.mouse.move(x, y)
    page.wait_for_selector("[data-picture=timeline] .hoverlayer .hovertext")
    assert "320 MiB" in text_of(opened, "[data-picture=timeline] .hoverlayer")
    page.mouse.click(x, y)
    page.wait_for_function(f"{_PRESSED} == '10.0 s'")
    page.get_by_role("button", name="by process").click()
    shown = "document.querySelector('[data-picture=timeline]').data.map((t) => [t.name, t.visible])"
    layers = dict(opened.evaluate(shown))
    assert layers["4711 python train.py"] is True and layers["heap"] is False
    assert opened.is_quiet()


def test_hostile_names_stay_text_in_a_browser(open_page: Open) -> None:
    opened = drawn(open_page(plan_page(hostile_plan())))
    words = opened.evaluate("document.body.innerText")
    assert NAMES[0] in words and TARGET.partition("\x1b")[0] in words
    assert opened.evaluate("window.hacked") is None
    assert opened.evaluate("document.querySelectorAll('main img, main a, .plot a').length") == 0
    tiles = opened.page.locator("[data-picture=composition] .slice text").all_text_contents()
    tiles = [" ".join(tile.split()) for tile in tiles]
    assert any(tile.startswith("<img src=x") for tile in tiles)
    assert any(tile.startswith("<b>bold</b>") for tile in tiles)
    assert any(tile.startswith("%{percentRoot}<extra>") for tile in tiles)
    assert opened.is_quiet()


@pytest.mark.slow
def test_nothing_leaves_a_page_and_nothing_else_runs_in_it(open_page: Open) -> None:
    opened = drawn(open_page(plan_page(ppo_plan())))
    tried = opened.evaluate(
        """async () => {
            const refused = [];
            try { await fetch('http://127.0.0.1:9/x'); } catch { refused.push('fetch'); }
            const script = document.createElement('script');
            script.textContent = 'window.injected = 1';
            document.body.append(script);
            const image = new Image();
            const failed = new Promise((done) => { image.onerror = () => done('image'); });
            image.src = 'http://127.0.0.1:9/x.png';
            refused.push(await failed);
            try { eval('1'); } catch { refused.push('eval'); }
            return [refused, window.injected === undefined];
        }"""
    )
    assert tried == [["fetch", "image", "eval"], True]
    assert all("Content Security Policy" in said for said in opened.said)
    assert not [url for url in opened.asked if url.startswith("http://") and "favicon" in url]


def test_numbers_are_there_without_scripts(open_page: Open) -> None:
    opened = open_page(plan_page(ppo_plan()), java_script_enabled=False)
    page = opened.page
    assert page.locator(".verdict").is_visible()
    assert (
        page.locator("noscript").count()
        and "need JavaScript" in page.locator("noscript").inner_text()
    )
    assert not page.locator(".plot").first.is_visible()
    page.locator("#composition summary").click()
    assert page.locator("#composition td", has_text="rollout.observations").first.is_visible()
    assert opened.asked[1:] == []


@pytest.mark.slow
def test_a_report_fits_a_phone_and_paper(open_page: Open) -> None:
    opened = drawn(open_page(plan_page(ppo_plan()), width=390, color_scheme="dark"))
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")
    widths = opened.evaluate(
        "[...document.querySelectorAll('.plot .main-svg')]"
        ".map((svg) => svg.getBoundingClientRect().right)"
    )
    assert widths and max(widths) <= 390
    opened.page.emulate_media(media="print")
    assert not opened.page.locator("#theme").is_visible()
    assert len(opened.page.pdf(format="A4")) > 10_000
    assert opened.is_quiet()


@pytest.mark.slow
def test_a_notebook_draws_in_its_frame(open_page: Open) -> None:
    frame = render.notebook_frame(plan_page(ppo_plan()))
    opened = open_page(f"<!doctype html><title>notebook</title>{frame}")
    inner = opened.page.frames[1]
    inner.wait_for_selector("html[data-drawn=yes]", state="attached")
    assert inner.locator("[data-picture=moments] .point path").count() > 10
    assert opened.said == []


def test_docs_show_a_report_of_each_command() -> None:
    """And every picture that is there is shown."""
    assert set(SHOWN) == {f.stem.removeprefix("report-") for f in PICTURES.glob("report-*.png")}
    commands = {RESULTS[name].command for name in SHOWN}
    assert commands == {shown.command for shown in RESULTS.values()}


@pytest.mark.slow
@pytest.mark.parametrize("name", RESULTS)
def test_every_report_is_drawn_wide_narrow_light_and_dark(
    name: str, open_page: Open, request: pytest.FixtureRequest
) -> None:
    opened = open_page(result_page(name), color_scheme="light", device_scale_factor=0.7)
    plots = opened.evaluate("document.querySelectorAll('.plot').length")
    if plots:
        drawn(opened)
    assert opened.evaluate("document.querySelectorAll('.plot .main-svg').length") >= plots
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")
    if name in SHOWN:
        _picture_of_docs(opened, name, renew=request.config.getoption("--renew"))
    before = opened.evaluate("getComputedStyle(document.body).backgroundColor")
    opened.page.emulate_media(color_scheme="dark")
    opened.page.set_viewport_size({"width": 390, "height": 844})
    opened.page.wait_for_function(
        "() => [...document.querySelectorAll('.plot .main-svg')]"
        ".every((svg) => svg.getBoundingClientRect().right <= 390)"
    )
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert opened.evaluate("getComputedStyle(document.body).backgroundColor") != before
    assert opened.is_quiet()


def _picture_of_docs(opened: Opened, name: str, *, renew: bool) -> None:
    """The top of a report, for docs/reports.md; `--renew` takes it anew."""
    file = PICTURES / f"report-{name}.png"
    taken = opened.page.screenshot()
    if renew:
        file.write_bytes(taken)
    assert file.exists(), f"{file.name} is missing: run pytest --renew"
    kept = file.read_bytes()
    assert len(kept) < 100_000 and kept[16:24] == taken[16:24]  # width and height


@pytest.mark.slow
def test_a_recording_of_thousands_of_phases_is_drawn(open_page: Open) -> None:
    short = trace()
    phase = short.events[1]
    told = tuple(
        replace(phase, seconds=i * 0.03, text=("rollout", "update")[i % 2]) for i in range(3900)
    )
    long = replace(short, events=told)
    page = to_html(render.trace_blocks(long, FORECAST), render.trace_json(long, FORECAST))
    assert drawn(open_page(page)).is_quiet()
