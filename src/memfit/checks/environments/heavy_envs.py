"""MF513: what envs keep for themselves is the largest part of the run.

What: the envs of a run, or of its workers, together hold more than a third of its peak, and each
one more than a MiB and a hundred times what it shows.

Why: what many envs keep alike needs to be there once: levels, data that is only read, graphs that
no observation shows. 100 envs of a platformer took 2.7 GiB, of which the observations were 2.5 MB;
without the graphs and with levels shared they took 4.6 MiB.

Bad:
    env = make_vec_env(Platformer, n_envs=100)  # each builds its own graph, 27 MiB

Good:
    level = memfit.dropins.shared(load_level)  # one read-only copy for all envs and workers
    env = make_vec_env(Platformer, n_envs=100)
"""

from __future__ import annotations

from collections.abc import Iterator

from memfit.formulas.array_bytes import fixed_bytes
from memfit.model import Finding, Kind, Ledger, RunSpec, Severity
from memfit.units import MIB, format_bytes

CODE = "MF513"
SEVERITY = Severity.INFO
_SHARE, _OBSERVATIONS = 3, 100


def find(spec: RunSpec, ledger: Ledger, limit: int) -> Iterator[Finding]:
    envs = ledger.knobs.get("n_envs", 1)
    kept = [c for c in ledger.components if c.kind is Kind.ENV_STATE]
    held = sum(ledger.bytes_of(c) for c in kept if c.alive_in(ledger.peak.moment))
    shown = sum(map(fixed_bytes, spec.observation))
    if envs < 2 or not shown or _SHARE * held < ledger.peak.bytes:
        return
    each = held // envs
    if each < max(MIB, _OBSERVATIONS * shown):
        return
    yield Finding(
        code=CODE,
        severity=SEVERITY,
        message=f"{envs} envs keep {format_bytes(each)} each, {format_bytes(held)} of the peak, "
        f"and show {format_bytes(shown)}: memfit profile says which arrays; what is only read can "
        "be shared (memfit.dropins.shared), what no observation shows need not be built",
        where="env",
        bytes=held,
    )
