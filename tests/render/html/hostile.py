"""A plan whose names try everything that a page could mistake for its own words."""

from __future__ import annotations

from dataclasses import replace

from memfit.model import Advice, Finding, Kind, Plan, Severity, const
from memfit.units import MIB
from tests.samples import ppo_plan, row

TARGET = "</script><script>window.hacked=1</script>\x1b[31m.py"
NAMES = (
    '<img src=x onerror="window.hacked=1">',
    "<b>bold</b> & <a href='javascript:window.hacked=1'>link</a>",
    "%{percentRoot}<extra>",
    "\u2028line\u2029 \x1b]0;title\x07 \u202egnitirw",
    "\"quoted\" 'twice' `ticks`",
    "<!--<script>",
)


def hostile_plan() -> Plan:
    """Every place of a plan that somebody else names."""
    plan = ppo_plan()
    rows = [row(name, Kind.BUFFER, const(40 * MIB), ("update",), where=name) for name in NAMES]
    first = NAMES[0]
    return replace(
        plan,
        target=TARGET,
        ledger=replace(plan.ledger, components=(*plan.ledger.components, *rows)),
        findings=(Finding(code="MF001", severity=Severity.ERROR, message=first, where=NAMES[1]),),
        advice=(Advice(code="MF001", change=f"n_envs=4 {first}", saves_bytes=5 * MIB),),
        notes=(first, TARGET),
    )
