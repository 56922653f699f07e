"""MF407: much more would fit.

What: twice as many envs, and more, would fit into half of the limit, and there are cores for them;
or a recorded run stayed below an eighth of its limit.

Why: what is left is paid for and not used. More envs collect more in the same time, while the
rollout of each may be shorter at the same size. It changes the training.

Bad:
    env = make_vec_env(make_env, n_envs=2)  # on 16 cores and 32 GiB

Good:
    env = make_vec_env(make_env, n_envs=16)
"""

from __future__ import annotations

from collections.abc import Iterator

from memfit.checks._machine import cores
from memfit.model import Finding, Forecast, Ledger, RunSpec, Severity, Trace
from memfit.units import format_bytes

CODE = "MF407"
OFF = "many runs are small on purpose"
_MOST = 1 << 16
_IDLE = 0.125  # of the limit


def find(spec: RunSpec, ledger: Ledger, limit: int) -> Iterator[Finding]:
    envs = ledger.knobs.get("n_envs", 0)
    if not envs or not any("n_envs" in c.size.knobs for c in ledger.components):
        return
    fitting = envs
    while fitting < _MOST and ledger.at(n_envs=2 * fitting).peak.bytes <= limit // 2:
        fitting *= 2
    if fitting == envs or cores() < 2 * envs:
        return
    yield Finding(
        code=CODE,
        severity=Severity.INFO,
        message=f"{min(fitting, cores()):,} envs would take "
        f"{format_bytes(ledger.at(n_envs=min(fitting, cores())).peak.bytes)} of "
        f"{format_bytes(limit)}: there are {envs:,}",
        where="n_envs",
    )


def find_in_recording(trace: Trace, forecast: Forecast) -> Iterator[Finding]:
    share, peak, limit = trace.limit_share, trace.peak, trace.limit
    if share is None or peak is None or limit is None or share >= _IDLE:
        return
    yield Finding(
        code=CODE,
        severity=Severity.INFO,
        message=f"the run never held more than {format_bytes(peak.bytes)} of "
        f"{format_bytes(limit.bytes)} ({limit.source}), {share:.0%}",
        where=f"in {trace.seconds:.0f} s",
        fix="more envs, a larger batch, or a smaller request: memfit plan says what fits",
    )
