"""The page of a result, read as text: it needs nothing else, and says all that it draws."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from memfit import render
from memfit.cli import main
from memfit.errors import MissingExtra, UsageError
from memfit.model import Forecast, Growth, Limit, Member, Plan, Reading
from memfit.render import Bars, Block, Text, Tone, read_report, to_html
from memfit.render.html import page as page_module
from memfit.render.html.embedded import PICTURES, RESULT, safe_json
from memfit.render.html.markup import split_verdict
from memfit.render.html.pictures import pictures
from memfit.units import MIB
from tests.render.html.hostile import NAMES, TARGET, hostile_plan
from tests.render.pages import element
from tests.render.test_golden import RESULTS
from tests.samples import ppo_plan
from tests.samples_live import FORECAST, explanation, trace

_MOST = 6_000_000
_VOID = {"meta", "br", "img", "link", "input", "hr"}


class Elements(HTMLParser):
    """Elements of a page with their attributes, and whether all that was opened was closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"{tag} is closed where it is not open"

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("script", "style"):
            self.words += data


def plan_page(plan: Plan) -> str:
    return to_html(render.plan_blocks(plan), render.plan_json(plan))


@pytest.mark.parametrize("name", RESULTS)
def test_a_page_is_whole_small_and_asks_for_nothing(name: str) -> None:
    shown = RESULTS[name]
    page = to_html(shown.blocks(), shown.data())
    elements = Elements(page)
    assert not elements.open
    assert len(page.encode()) <= _MOST
    for tag, attributes in elements.found:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form")
        assert not {"src", "href", "action", "onclick", "onerror", "onload"} & attributes.keys()
    # All that is loaded would be told here; a policy forbids it in any case.
    policy = next(a["content"] for t, a in elements.found if a.get("http-equiv"))
    assert policy is not None and policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-inline'; img-src data:" in policy and "unsafe-eval" not in policy


@pytest.mark.parametrize("name", RESULTS)
def test_a_page_is_read_back(name: str) -> None:
    shown = RESULTS[name]
    blocks = shown.blocks()
    found = read_report(to_html(blocks, shown.data()).encode())
    assert found.data == json.loads(json.dumps(shown.data()))
    assert list(found.blocks) == blocks


def test_only_scripts_of_the_page_may_run() -> None:
    page = plan_page(ppo_plan())
    script = page.rpartition("<script>")[2].partition("</script>")[0]
    packed = element(page, "memfit-plotly")
    for text in (script.encode(), gzip.decompress(base64.b64decode(packed))):
        assert base64.b64encode(hashlib.sha256(text).digest()).decode() in page[:2000]


def test_scripts_are_the_same_bytes_in_any_encoding_of_the_page_around_them() -> None:
    """The frame of a notebook may stand in a page that does not say its encoding."""
    assert (Path(page_module.__file__).parent / "page.js").read_text(encoding="utf-8").isascii()


def test_a_page_is_the_same_each_time() -> None:
    assert plan_page(ppo_plan()) == plan_page(ppo_plan())


def test_the_verdict_the_figures_and_what_is_unattributed_come_first() -> None:
    words = Elements(plan_page(ppo_plan())).words
    order = (
        "memfit plan",
        "train.py",
        "Fits: peak",
        "at most",
        "unattributed",
        "What is alive when",
    )
    places = [words.index(text) for text in order]
    assert places == sorted(places)


@pytest.mark.parametrize("name", RESULTS)
def test_every_picture_has_its_numbers_as_a_table(name: str) -> None:
    shown = RESULTS[name]
    page = to_html(shown.blocks(), shown.data())
    sections = re.findall(r'<section class="picture".*?</section>', page, re.DOTALL)
    drawn = json.loads(element(page, PICTURES)) if sections else {}
    assert len(sections) == len(drawn)
    for section in sections:
        assert section.count("<details>") >= 1 and "<tbody><tr>" in section
    if name not in ("run", "check", "watch"):  # too few findings; a frame has no rows of its own
        assert drawn


def test_all_components_of_a_moment_are_drawn_and_add_up() -> None:
    plan = ppo_plan()
    drawn = json.loads(element(plan_page(plan), PICTURES))
    for view in drawn["composition"]["views"]:
        assert sum(view["trace"]["values"]) == plan.ledger.moment_bytes[view["key"]]
    stacked: dict[str, int] = {}
    for one in drawn["moments"]["traces"]:
        if one["type"] == "bar":
            for moment, amount in zip(one["y"], one["x"], strict=True):
                stacked[moment] = stacked.get(moment, 0) + amount
    assert stacked == plan.ledger.moment_bytes


def test_hostile_names_stay_text() -> None:
    page = plan_page(hostile_plan())
    elements = Elements(page)
    assert not elements.open
    assert sum(tag == "script" for tag, _ in elements.found) == 5
    assert not any(tag in ("img", "a", "b") for tag, _ in elements.found)
    assert "\x1b" not in page and "\u202e" not in page and "\u2028" not in page
    assert NAMES[0] in elements.words and "</script><script>" in elements.words
    data = element(page, RESULT)
    assert not set("<>&") & set(data)
    assert json.loads(data)["target"] == TARGET


@pytest.mark.parametrize(
    "text", ["</script>", "<!--", "\u2028\u2029", "&amp;", "\ud800", "\x7f\x9b"]
)
def test_data_never_ends_its_element(text: str) -> None:
    safe = safe_json({text: text})
    assert safe.encode("utf-8")
    assert not set("<>&\u2028\u2029\x7f\x9b") & set(safe)
    assert json.loads(safe) == {text: text}


def test_a_recording_is_stacked_by_component_and_by_process() -> None:
    drawn = json.loads(element(result_page("explain-recording"), PICTURES))["timeline"]
    assert drawn["layers"].keys() == {"by component", "by process"}
    names = [one["name"] for one in drawn["traces"]]
    assert "in rollout" in names and "in update" in names and "memory of the run" in names
    assert drawn["layout"]["shapes"][0]["y0"] == 690 * MIB
    parts = [drawn["traces"][i] for i in drawn["layers"]["by component"]]
    assert sum(part["y"][-1] for part in parts) == 700 * MIB


def result_page(name: str) -> str:
    return to_html(RESULTS[name].blocks(), RESULTS[name].data())


def test_a_forecast_is_drawn_up_to_the_limit() -> None:
    ahead = replace(FORECAST, reaches_limit_at=150.0, low=140.0, high=170.0)
    limited = replace(trace(), limit=Limit(bytes=900 * MIB, source="--limit"))
    page = to_html(render.trace_blocks(limited, ahead), render.trace_json(limited, ahead))
    drawn = json.loads(element(page, PICTURES))["timeline"]
    forecast = next(one for one in drawn["traces"] if one["name"] == "forecast")
    assert (forecast["x"], forecast["y"]) == ([120.0, 150.0], [700 * MIB, 900 * MIB])
    assert drawn["layout"]["xaxis"]["range"][1] == 170.0


def test_a_long_recording_stays_small_and_keeps_its_peak() -> None:
    readings = tuple(Reading(seconds=0.25 * i, bytes=MIB + i % 977) for i in range(200_000))
    readings = (*readings[:99_000], Reading(seconds=24750.0, bytes=10**9), *readings[99_001:])
    member = Member(pid=1, name="train", readings=readings)
    long = replace(trace(), readings=readings, members=(member, replace(member, pid=2)))
    forecast = Forecast(growth=Growth.STABLE, bytes_per_second=0.0)
    page = to_html(render.trace_blocks(long, forecast), render.trace_json(long, forecast))
    assert len(page.encode()) <= _MOST
    kept = read_report(page.encode()).data
    assert max(amount for _, amount in kept["readings"]) == 10**9 == kept["peak_bytes"]


def test_a_large_tree_stays_small_and_keeps_its_sums() -> None:
    small = explanation()
    many = replace(small, processes=small.processes[:1] * 8000)
    page = to_html(render.explain_short(many), render.explain_json(many))
    assert len(page.encode()) <= _MOST
    assert len(read_report(page.encode()).data["processes"]) == 8000


def test_a_command_without_pictures_of_its_own_has_a_page() -> None:
    blocks: list[Block] = [Text("42 saved", Tone.GOOD), Bars(bars=())]
    data: dict[str, Any] = {"schema": 1, "kind": "new", "target": "a.py", "fixes": [{"code": "x"}]}
    words = Elements(to_html(blocks, data)).words
    assert "memfit new" in words and "42 saved" in words


def test_measured_savings_lie_under_what_was_predicted() -> None:
    advice = [
        {"code": "MF1", "change": "a", "saves_bytes": 5 * MIB, "measured_bytes": 4 * MIB},
        {"code": "MF2", "change": "b", "saves_bytes": None, "measured_bytes": None},
        {"code": "MF3", "change": "c", "saves_bytes": 9 * MIB, "measured_bytes": -MIB},
    ]
    data = {
        "schema": 1,
        "kind": "optimize",
        "target": "a.py",
        "peak_bytes": 90 * MIB,
        "after_bytes": 80 * MIB,
        "limit_bytes": 85 * MIB,
        "advice": advice,
        "together": {"codes": ["MF1", "MF3"]},
    }
    page = to_html([Text("saved", Tone.GOOD)], data)
    drawn = json.loads(element(page, PICTURES))
    assert list(drawn) == ["before-after", "savings"]
    assert drawn["before-after"]["traces"][0]["x"] == [90 * MIB, 80 * MIB]
    measured, predicted = drawn["savings"]["traces"]
    assert (measured["x"], predicted["x"]) == ([4 * MIB], [9 * MIB, 5 * MIB])


def test_without_plotly_it_is_said_before_the_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(page_module, "find_spec", lambda name: None)
    assert main(["plan", "missing.py", "--format", "html"]) == 2
    assert 'pip install "memfit[report]"' in capsys.readouterr().err
    with pytest.raises(MissingExtra):
        render.check_pictures()


def test_numbers_alone_need_no_plotly() -> None:
    plan = ppo_plan()
    page = to_html(render.plan_blocks(plan), render.plan_json(plan), drawn=False)
    assert len(page) < 100_000
    assert "memfit[report]" in page and "memfit-plotly" not in page.partition("<script>")[0]


def test_a_page_is_explained_and_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.html"
    plan.write_text(plan_page(ppo_plan()), encoding="utf-8")
    run = tmp_path / "run.html"
    run.write_text(result_page("explain-recording"), encoding="utf-8")
    assert main(["explain", str(plan), "--format", "json"]) == 0
    data = render.plan_json(ppo_plan())
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(data))
    assert main(["explain", str(plan)]) == 0
    assert capsys.readouterr().out.startswith("Fits: peak 357 MiB")
    assert main(["explain", str(plan), "--format", "html"]) == 0
    assert capsys.readouterr().out == plan.read_text(encoding="utf-8")
    assert main(["compare", str(plan), str(run), "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["before_bytes"], told["after_bytes"]) == (data["peak_bytes"], 700 * MIB)
    assert told["before_course"]["phases"] == data["phases"]
    assert told["after_course"]["readings"][-1] == [120.0, 700 * MIB]


@pytest.mark.parametrize(
    ("result", "blocks"),
    [
        (None, None),
        ("{", "[]"),
        ("[1]", "[]"),
        ("{}", None),
        ("{}", '[{"block":"X"}]'),
        ("{}", '[{"block":"Text","text":7}]'),
        ("{}", "[" * 100_000),
        ("\xff", "[]"),
    ],
)
def test_a_page_of_others_is_refused(
    result: str | None, blocks: str | None, tmp_path: Path
) -> None:
    begin = '<script type="application/'
    page = b"<!doctype html>"
    if result is not None:
        page += f'{begin}json" id="memfit-result">{result}</script>'.encode("latin-1")
    if blocks is not None:
        page += f'{begin}vnd.memfit.blocks+json" id="memfit-blocks">{blocks}</script>'.encode()
    with pytest.raises(UsageError, match="no result of memfit"):
        read_report(page)
    file = tmp_path / "page.html"
    file.write_bytes(page)
    assert main(["explain", str(file)]) == 2
    assert main(["compare", str(file), str(file)]) == 2


@pytest.mark.parametrize(
    "changed",
    [
        {"moments": {"x": "y"}},
        {"components": [{"name": 1, "kind": [], "bytes": "many"}]},
        {"capacity": [{}]},
        {"advice": [{"saves_bytes": 5}]},
        {"kind": "recording", "readings": [["a"]]},
        {"devices": [3]},
        {"schema": 99},
    ],
)
def test_data_that_memfit_never_writes_are_refused(
    changed: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks, data = render.plan_blocks(ppo_plan()), render.plan_json(ppo_plan())
    page = to_html(blocks, data)
    file = tmp_path / "page.html"
    file.write_text(page.replace(element(page, RESULT), safe_json({**data, **changed})))
    assert main(["explain", str(file), "--format", "html"]) == 2
    told = capsys.readouterr()
    assert told.out == "" and told.err.startswith("memfit: ") and "Traceback" not in told.err


def test_the_worst_of_several_verdicts_colours_the_sentence() -> None:
    blocks = [Text("one", verdict=True), Text("two", Tone.BAD, verdict=True), Text("three")]
    verdict, rest = split_verdict(blocks)
    assert verdict == '<p class="verdict bad">one; two</p>'
    assert rest == [blocks[2]]


def test_a_notebook_shows_the_page_in_a_frame_of_its_own() -> None:
    import memfit.api.plan  # noqa: F401  # who wires the rooms says how results are drawn

    frame = ppo_plan()._repr_html_()
    assert frame is not None
    elements = Elements(frame)
    assert [(tag, attributes["sandbox"]) for tag, attributes in elements.found] == [
        ("iframe", "allow-scripts")
    ]
    inner = elements.found[0][1]["srcdoc"]
    assert inner == plan_page(ppo_plan())
    assert trace()._repr_html_() is not None
    assert explanation()._repr_html_() is not None


def test_each_picture_of_a_demonstration_is_there_once() -> None:
    shown = RESULTS["demo"]
    keys = [picture.key for picture in pictures(shown.data())]
    assert len(keys) == len(set(keys))
    assert {"beside-phases", "timeline", "before-after", "savings", "moments"} <= set(keys)


def test_a_live_view_is_called_by_its_run_and_a_missed_target_is_bad() -> None:
    page = result_page("watch")
    assert "<h1>python train.py</h1>" in page
    assert '<p class="verdict bad">' in page and "MISSED" in page
    assert "┤" not in page.partition("</main>")[0]  # the picture shows it


def test_one_reading_is_a_point_and_not_an_empty_picture() -> None:
    one = replace(trace(), readings=trace().readings[:1])
    (timeline,) = (p for p in pictures(render.trace_json(one, FORECAST)) if p.key == "timeline")
    (whole,) = (t for t in timeline.traces if t["name"] == "memory of the run")
    assert whole["mode"] == "markers"
