"""What people and programs see of a plan; test_golden.py holds it word for word."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

import pytest

from memfit.analyses.capacity import on_card
from memfit.model import Kind, Limit, Plan, const
from memfit.render import (
    Column,
    Heading,
    Table,
    Text,
    plan_blocks,
    plan_json,
    to_markdown,
    to_terminal,
)
from memfit.render.plan import verdict
from memfit.units import format_bytes
from tests.samples import dqn_plan, ppo_ledger, ppo_plan, row


def terminal(plan: Plan) -> str:
    file = io.StringIO()
    to_terminal(plan_blocks(plan), file)
    return file.getvalue()


def test_json_keeps_the_contract() -> None:
    plan = ppo_plan()
    data = plan_json(plan)
    assert (data["schema"], data["kind"]) == (1, "plan")
    assert data["fits"] is True
    assert data["peak_bytes"] == max(data["moments"].values()) == max(data["phases"].values())
    assert data["limit_source"] == "RAM"
    assert data["run"] == {
        "library": "stable-baselines3",
        "version": "2.9.2",
        "algorithm": "PPO",
        "policy": "CnnPolicy",
    }
    keys = {"name", "kind", "place", "bytes", "formula", "phases", "evidence"}
    reserved = [c for c in data["components"] if "reserved_bytes" in c]
    assert [c["name"] for c in reserved] == ["thread stacks"]
    assert all(c.keys() - {"reserved_bytes"} == keys for c in data["components"])
    assert all(c["evidence"].keys() == {"kind", "where"} for c in data["components"])
    assert len(data["components"]) == len(plan.ledger.components)


def test_the_first_line_is_the_verdict() -> None:
    first = plan_blocks(ppo_plan())[0]
    assert isinstance(first, Text)
    assert first.text == verdict(ppo_plan())


@pytest.mark.parametrize(
    ("limit", "upper", "words"),
    [(1000, 10**6, "Does not fit: "), (10**12, 10**10, "Fits: "), (10**10, 10**11, "barely")],
)
def test_the_verdict_says_whether_it_fits(limit: int, upper: int, words: str) -> None:
    plan = replace(ppo_plan(), limit=Limit(bytes=limit, source="--limit"), upper_bytes=upper)
    assert words in verdict(plan)
    assert "(--limit)" in verdict(plan)
    assert "update" in verdict(plan)


def with_small_rows() -> Plan:
    plan = ppo_plan()
    small = [row(f"tiny.{i}", Kind.BUFFER, const(i), ("update",)) for i in range(4)]
    small += [row(f"brief.{i}", Kind.BUFFER, const(i), ("save",)) for i in range(3)]
    return replace(plan, ledger=replace(plan.ledger, components=(*plan.ledger.components, *small)))


@pytest.mark.parametrize("make", [ppo_plan, dqn_plan, with_small_rows])
def test_no_component_is_hidden(make: Callable[[], Plan]) -> None:
    plan = make()
    tables = [b for b in plan_blocks(plan) if isinstance(b, Table)]
    shown = {line[0] for table in tables for line in table.rows}
    texts = " ".join(b.text for b in plan_blocks(plan) if isinstance(b, Text))
    hidden = {c.name for c in plan.ledger.components} - shown
    assert all(name in texts for name in hidden)


def test_many_small_rows_are_named_together() -> None:
    text = terminal(with_small_rows())
    assert "and 4 rows below 0.1 MiB, together <0.1 MiB: tiny.3, tiny.2, tiny.1, tiny.0" in text
    assert "and 3 rows below 0.1 MiB" in text


def test_sections_without_content_are_left_out() -> None:
    plan = replace(ppo_plan(), capacity=(), notes=())
    headings = {b.text for b in plan_blocks(plan) if isinstance(b, Heading)}
    assert headings == {"Alive at the peak, in update.minibatch", "Phases", "Not alive at the peak"}


def test_a_terminal_without_unicode_gets_plain_bars() -> None:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii")
    to_terminal(plan_blocks(ppo_plan()), file)
    file.flush()
    assert b"####" in raw.getvalue()


def test_markdown_leaves_formulas_alone() -> None:
    assert to_markdown([Text(text="a * b_c | d <e>")]) == "a \\* b_c \\| d \\<e>\n"
    table = Table(columns=(Column(name="formula", code=True),), rows=(("a * b_c | d",),))
    assert "| `a * b_c \\| d` |" in to_markdown([table])


def test_what_is_assumed_of_a_card_is_stated() -> None:
    texts = [b.text for b in plan_blocks(ppo_plan()) if isinstance(b, Text)]
    context = next(c for c in on_card(ppo_ledger()).components if c.name == "cuda.context")
    assert any(format_bytes(context.size.evaluate({})) in text for text in texts)
    assert "card" not in terminal(dqn_plan())
