"""What every command shows, in every format, held in golden files.

`pytest tests/render --renew` writes them anew. Read what changed before it is committed.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.main import get_group

from memfit import render
from memfit.cli.app import app
from memfit.device.held import explain_card
from memfit.model import Plan, Sweep
from memfit.model.device_explanation import SnapshotExplanation
from memfit.render import Block
from tests import (
    samples,
    samples_compared,
    samples_device,
    samples_live,
    samples_optimized,
    samples_profile,
)
from tests.render.pages import structure

GOLDEN = Path(__file__).parent / "golden"
Golden = Callable[[str, str], None]
Data = dict[str, Any]


class Shown(NamedTuple):
    """One result: the command that shows it, its blocks, and its JSON."""

    command: str
    blocks: Callable[[], list[Block]]
    data: Callable[[], Data]


def _plan(make: Callable[[], Plan]) -> Shown:
    return Shown("plan", lambda: render.plan_blocks(make()), lambda: render.plan_json(make()))


def _sweep(make: Callable[[], Sweep]) -> Shown:
    return Shown("sweep", lambda: render.sweep_blocks(make()), lambda: render.sweep_json(make()))


def _snapshot() -> SnapshotExplanation:
    card = explain_card(samples_device.out_of_memory().snapshot())
    return SnapshotExplanation(path="snapshot.pickle", devices=(card,), seconds=0.25)


TRACE, FORECAST = samples_live.trace(), samples_live.FORECAST
RESULTS = {
    "plan-ppo": _plan(samples.ppo_plan),
    "plan-dqn": _plan(samples.dqn_plan),
    "sweep-target": _sweep(samples_compared.sweep_of_a_target),
    "sweep-command": _sweep(samples_compared.sweep_of_a_command),
    # What a run leaves for programs is its recording.
    "run": Shown(
        "run",
        lambda: render.trace_summary(TRACE, FORECAST, "night.db"),
        lambda: render.trace_json(TRACE, FORECAST),
    ),
    "explain-short": Shown(
        "explain",
        lambda: render.explain_short(samples_live.explanation()),
        lambda: render.explain_json(samples_live.explanation()),
    ),
    "explain": Shown(
        "explain",
        lambda: render.explain_blocks(samples_live.explanation()),
        lambda: render.explain_json(samples_live.explanation()),
    ),
    "explain-recording": Shown(
        "explain",
        lambda: render.trace_blocks(TRACE, FORECAST),
        lambda: render.trace_json(TRACE, FORECAST),
    ),
    "explain-snapshot": Shown(
        "explain",
        lambda: render.snapshot_blocks(_snapshot()),
        lambda: render.snapshot_json(_snapshot()),
    ),
    "watch": Shown(
        "watch",
        lambda: render.frame_blocks(samples_live.frame()),
        lambda: render.frame_json(samples_live.frame()),
    ),
    "profile-leak": Shown(
        "profile",
        lambda: render.profile_blocks(samples_profile.leaking()),
        lambda: render.profile_json(samples_profile.leaking()),
    ),
    "profile": Shown(
        "profile",
        lambda: render.profile_blocks(samples_profile.stable()),
        lambda: render.profile_json(samples_profile.stable()),
    ),
    "plan-for-kubernetes": Shown(
        "plan",
        lambda: render.request_blocks(*samples_compared.requested()),
        lambda: render.request_json(*samples_compared.requested()),
    ),
    "compare-jobs": Shown(
        "compare",
        lambda: render.jobs_blocks(samples_compared.jobs()),
        lambda: render.jobs_json(samples_compared.jobs()),
    ),
    "compare": Shown(
        "compare",
        lambda: render.compare_blocks(samples_compared.comparison()),
        lambda: render.compare_json(samples_compared.comparison()),
    ),
    "check": Shown(
        "check",
        lambda: render.check_blocks(samples_compared.checked()),
        lambda: render.check_json(samples_compared.checked()),
    ),
    "optimize": Shown(
        "optimize",
        lambda: render.optimize_blocks(samples_optimized.optimized()),
        lambda: render.optimize_json(samples_optimized.optimized()),
    ),
    "demo": Shown(
        "demo",
        lambda: render.demo_blocks(samples_compared.demo()),
        lambda: render.demo_json(samples_compared.demo()),
    ),
    "system-document": Shown(
        "demo",
        lambda: render.system_document_blocks(samples_compared.system_document()),
        lambda: render.system_document_json(samples_compared.system_document()),
    ),
    "demo-system": Shown(
        "demo",
        lambda: render.system_demo_blocks(samples_compared.system_demo()),
        lambda: render.system_demo_json(samples_compared.system_demo()),
    ),
}


def terminal(shown: Shown) -> str:
    file = io.StringIO()
    render.to_terminal(shown.blocks(), file)
    return file.getvalue()


FORMATS: dict[str, Callable[[Shown], str]] = {
    "txt": terminal,
    "md": lambda shown: render.to_markdown(shown.blocks()),
    "json": lambda shown: json.dumps(shown.data(), indent=2) + "\n",
    "html": lambda shown: structure(render.to_html(shown.blocks(), shown.data())),
}


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_shown_as_before(name: str, ending: str, golden: Golden) -> None:
    golden(f"{name}.{ending}", FORMATS[ending](RESULTS[name]))


@pytest.mark.parametrize("name", RESULTS)
def test_a_pipe_gets_no_colours_and_lines_of_a_hundred_characters(name: str) -> None:
    text = terminal(RESULTS[name])
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("name", RESULTS)
def test_json_says_what_it_is(name: str) -> None:
    data = RESULTS[name].data()
    assert data["schema"] == 1
    told = {"run": "recording", "explain-recording": "recording"}
    assert data["kind"] == told.get(name, RESULTS[name].command)


def test_every_command_has_golden_files_and_none_is_left_over() -> None:
    others = {"export"}  # writes what other tools read: tests/cli/test_export.py
    assert {shown.command for shown in RESULTS.values()} == set(get_group(app).commands) - others
    wanted = {f"{name}.{ending}" for name in RESULTS for ending in FORMATS}
    assert {file.name for file in GOLDEN.iterdir()} == wanted
