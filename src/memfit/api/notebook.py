"""Results in a notebook: the report of each, drawn where plotly is installed."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from memfit.model import (
    Checked,
    Comparison,
    Demo,
    Explanation,
    JobsComparison,
    Plan,
    Profile,
    Sweep,
    SystemDemo,
    Trace,
)
from memfit.model.device_explanation import SnapshotExplanation
from memfit.model.optimized import Optimized


def report(result: Any) -> str | None:
    """A result as a part of a notebook; None for one that has no report."""
    from memfit import render

    parts = _parts(result)
    if parts is None:
        return None
    blocks, data = parts
    page = render.to_html(blocks, data, drawn=find_spec("plotly") is not None)
    return render.notebook_frame(page)


def _parts(result: Any) -> tuple[Any, Any] | None:
    """The blocks and the JSON of a result."""
    from memfit import render

    if isinstance(result, Trace):
        from memfit.api.compare import outlook

        forecast = outlook(result)
        return render.trace_blocks(result, forecast), render.trace_json(result, forecast)
    shown: dict[type, tuple[Callable[..., Any], Callable[..., Any]]] = {
        Plan: (render.plan_blocks, render.plan_json),
        Explanation: (render.explain_short, render.explain_json),
        SnapshotExplanation: (render.snapshot_blocks, render.snapshot_json),
        Profile: (render.profile_blocks, render.profile_json),
        Sweep: (render.sweep_blocks, render.sweep_json),
        Optimized: (render.optimize_blocks, render.optimize_json),
        Checked: (render.check_blocks, render.check_json),
        Comparison: (render.compare_blocks, render.compare_json),
        JobsComparison: (render.jobs_blocks, render.jobs_json),
        Demo: (render.demo_blocks, render.demo_json),
        SystemDemo: (render.system_demo_blocks, render.system_demo_json),
    }
    made = shown.get(type(result))
    return None if made is None else (made[0](result), made[1](result))
