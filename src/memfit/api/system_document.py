"""`demo SYSTEM` as a document: planned at full size, measured at small ones, and checked."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from memfit.api.check import check
from memfit.api.demo import RUN_SECONDS, demo_system, demonstrations, system_run
from memfit.api.plan import Progress, plan, say
from memfit.model import (
    DemoVariant,
    Described,
    Finding,
    LogicCheck,
    Plan,
    SystemDemo,
    SystemDocument,
    SystemRun,
)

_PACKAGES = ("torch", "stable-baselines3", "gymnasium", "numpy")
_ROOT = Path(__file__).parents[1]


def system_document(system: str, *, progress: Progress | None = None) -> SystemDocument:
    """Everything that people write into such documents by hand, found out."""
    from memfit.measure.kernel.machine import machine

    started = time.monotonic()
    shown = demo_system(system, progress=progress)
    variants = demonstrations()[system]
    ways = []
    for variant in variants:
        say(progress, f"planning {system} {variant.name} at the size that it is described with")
        ways.append(Described(name=variant.name, plan=_full_plan(variant)))
    found = _text_findings(system)
    planned = ways[0].plan.findings
    return SystemDocument(
        date=datetime.now(UTC).date().isoformat(),
        machine=machine(_PACKAGES),
        demo=shown,
        ways=tuple(ways),
        beside=_beside(system, variants, shown, progress),
        issues=found,
        logic=_logic((*planned, *found)),
        seconds=time.monotonic() - started,
    )


def _full_plan(variant: DemoVariant) -> Plan:
    return plan(_ROOT / "specs" / variant.spec, per=variant.knob, timeout=RUN_SECONDS)


def _beside(
    system: str, variants: Sequence[DemoVariant], shown: SystemDemo, progress: Progress | None
) -> tuple[SystemRun, ...]:
    """Each way to train, measured at one size: the largest of all, or the first's largest."""
    common = set.intersection(*(set(variant.values) for variant in variants))
    value = max(common or variants[0].values)
    there = {(run.training, run.value): run for run in shown.runs}
    return tuple(
        there.get((variant.name, value)) or system_run(system, variant, value, progress)
        for variant in variants
    )


def _text_findings(system: str) -> tuple[Finding, ...]:
    """What the system's own text shows; places are told from the package on."""
    found = check([str(_ROOT / "systems" / system)]).findings
    return tuple(replace(f, where=f.where.removeprefix(f"{_ROOT}/")) for f in found)


def _logic(found: Sequence[Finding]) -> tuple[LogicCheck, ...]:
    """Every check of the logic family, with what it found."""
    from memfit.checks import all_checks
    from memfit.checks.page import page

    pages = [page(one) for one in all_checks() if ".logic." in one.__name__]
    return tuple(
        LogicCheck(
            code=known.code,
            title=known.title,
            found=tuple(f for f in found if f.code == known.code),
        )
        for known in pages
    )
