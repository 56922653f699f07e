"""A plan as JSON: the contract that scripts and schedulers rely on. Bytes are integers."""

from __future__ import annotations

from typing import Any

from memfit.model import Advice, Capacity, Crossing, Finding, Plan
from memfit.render.component_json import SCHEMA, component_json


def plan_json(plan: Plan) -> dict[str, Any]:
    """What `memfit plan --format json` prints."""
    ledger, spec = plan.ledger, plan.spec
    return {
        "schema": SCHEMA,
        "kind": "plan",
        "target": plan.target,
        "fits": plan.fits,
        "peak_bytes": plan.peak_bytes,
        "upper_bytes": plan.upper_bytes,
        "limit_bytes": plan.limit.bytes,
        "limit_source": plan.limit.source,
        "method": plan.method,
        "peak_moment": ledger.peak.moment,
        "phases": ledger.phase_bytes,
        "moments": ledger.moment_bytes,
        "components": [component_json(ledger, c, plan.per) for c in ledger.components],
        "knobs": dict(ledger.knobs),
        "changed": dict(plan.changed),
        "per": plan.per or None,
        "capacity": [_capacity(c) for c in plan.capacity],
        "crossing": _crossing(plan.crossing),
        "findings": [_finding(f) for f in plan.findings],
        "advice": [_advice(a) for a in plan.advice],
        "run": {
            "library": spec.library,
            "version": spec.version,
            "algorithm": spec.algorithm,
            "policy": spec.policy,
        },
        "notes": list(plan.notes),
        "seconds": round(plan.seconds, 3),
        "planner_peak_bytes": plan.planner_peak_bytes,
    }


def _capacity(capacity: Capacity) -> dict[str, Any]:
    return {
        "hardware": capacity.hardware,
        "bytes": capacity.bytes,
        "place": capacity.place,
        "peak_bytes": capacity.peak_bytes,
        "fits": capacity.fits,
        "largest": dict(capacity.largest),
    }


def _crossing(crossing: Crossing | None) -> dict[str, Any] | None:
    if crossing is None:
        return None
    return {"step": crossing.step, "moment": crossing.moment, "because": crossing.because}


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "severity": finding.severity.value,
        "message": finding.message,
        "where": finding.where,
    }


def _advice(advice: Advice) -> dict[str, Any]:
    return {
        "code": advice.code,
        "saves_bytes": advice.saves_bytes,
        "change": advice.change,
        "verified": advice.verified,
    }
