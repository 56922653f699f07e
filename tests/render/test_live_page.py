"""The live page's parts: its verdict, its curve, and that all of others' words are text."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfit.model import Forecast, Frame, Growth, Limit, Reading, Target, Watched
from memfit.render import live_metrics, live_page, run_parts
from memfit.render.chart import curve
from memfit.render.live_page import verdict
from memfit.units import GIB
from tests.samples_live import frame

STABLE = Forecast(growth=Growth.STABLE, bytes_per_second=0.0)
LEAKING = Forecast(growth=Growth.LEAKING, bytes_per_second=1.0)
MET = replace(frame(), targets=(), forecast=STABLE)


@pytest.mark.parametrize(
    ("shown", "tone", "words"),
    [
        (MET, "good", "Within its limit"),
        (frame(), "bad", "Will reach its limit in about 21 s"),
        (replace(MET, bytes=5 * GIB), "bad", "Over its limit"),
        (replace(frame(), bytes=5 * GIB), "bad", "Over its limit"),
        (replace(MET, forecast=LEAKING), "warn", "it leaks"),
        (replace(MET, targets=frame().targets), "warn", "a target is missed"),
        (replace(MET, ended=True), "good", "Ended, within its limit"),
        (replace(MET, ended=True, cut_short=True), "bad", "Ended before its time"),
        (replace(MET, ended=True, limit=Limit(bytes=1, source="x")), "bad", "over its limit"),
    ],
)
def test_the_verdict(shown: Frame, tone: str, words: str) -> None:
    found, said = verdict(shown)
    assert found == tone and words in said
    assert words in run_parts("a", shown, "")["parts"]["head"]


def test_times_to_the_limit_are_from_now() -> None:
    shown = frame()
    assert shown.seconds_to_limit == 21
    assert (shown.seconds_to_limit_at_least, shown.seconds_to_limit_at_most) == (11, 41)
    assert "between 11 s and 41 s" in run_parts("a", shown, "")["parts"]["tiles"]
    for over in (replace(shown, bytes=5 * GIB), replace(shown, ended=True)):
        assert over.seconds_to_limit is None is over.seconds_to_limit_at_least
    metrics = live_metrics({"a": shown, "b": MET})
    assert 'memfit_forecast_limit_seconds{run="a"} 21' in metrics
    assert 'memfit_forecast_limit_seconds{run="b"} +Inf' in metrics


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=300), st.integers(3, 60))
def test_a_thinner_curve_keeps_its_highest_and_its_last(held: list[int], most: int) -> None:
    readings = [Reading(seconds=i / 7, bytes=amount) for i, amount in enumerate(held)]
    points = curve(readings, most)
    assert len(points) <= most or len(readings) <= most
    assert max(p.bytes for p in points) == max(held)
    assert points[-1] is readings[-1]
    assert [p.seconds for p in points] == sorted({p.seconds for p in points})


class Elements(HTMLParser):
    """What elements and attributes a page has."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(name for name, _ in attrs)))


def named(text: str) -> Frame:
    """A frame with a text wherever others' words can be."""
    return replace(
        frame(),
        title=text,
        limit=Limit(bytes=4 * GIB, source=text),
        processes=(Watched(pid=1, depth=0, name=text, bytes=1),),
        rows=((text, 5), ("b", 3)),
        holders=((text, 5), ("b", 3)),
        notes=(text,),
        targets=(Target(name=text, wanted=text, found=text, met=True),),
        forecast=replace(frame().forecast, members=(text,)),
        ended=True,
    )


@given(st.text(st.characters(exclude_categories=()), min_size=1, max_size=40))
def test_no_name_becomes_an_element(text: str) -> None:
    template = "{{title}}{{runs}}"
    plain = live_page(template, {"a": (named("a"), "")})
    page = live_page(template, {text: (named(text), "")})
    assert Elements(page).found == Elements(plain).found
    page.encode()
    json.dumps(run_parts(text, named(text), text))


def test_a_run_that_was_not_read_yet_has_every_part() -> None:
    assert run_parts("a", None, "")["parts"].keys() == run_parts("a", frame(), "")["parts"].keys()
    assert "reading" in live_page("{{runs}}", {"a": (None, "")})
