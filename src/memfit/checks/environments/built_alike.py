"""MF514: each env builds the same thing for itself.

What: while envs are built, a function or class is given the same arguments in each, gives the same
result, and the env keeps it. Two envs were built and stepped, and what they keep was compared.

Why: graphs, backgrounds and spaces of a level are the same for all envs that play it. Built once
and kept, they are there once, and each further env is quicker to make. `build_once` does so without
an edit of the env, and lets nobody write to the arrays. Workers are processes of their own:
`memfit.dropins.shared` is for these.

Bad:
    env = make_vec_env(Platformer, n_envs=100)  # each builds the graph of its level

Good:
    from memfit.dropins import build_once

    build_once("platformer.graph:LevelGraph")
    env = make_vec_env(Platformer, n_envs=100)
"""

from __future__ import annotations

from collections.abc import Iterator

from memfit.checks._rows import resized, row
from memfit.model import Changes, Finding, Fix, Ledger, RunSpec, Severity, knob
from memfit.units import format_bytes

CODE = "MF514"
ROW = "env.state"


def find(spec: RunSpec, ledger: Ledger, limit: int) -> Iterator[Finding]:
    again = _again(spec, ledger)
    if again > 0:
        names = ", ".join(spec.built_alike)
        yield Finding(
            code=CODE,
            severity=Severity.INFO,
            message=f"each of {ledger.knobs['n_envs']:,} envs builds the same for itself: {names}, "
            f"at least {format_bytes(spec.built_alike_bytes)} each",
            where="env",
            bytes=again,
        )


def fix(spec: RunSpec, ledger: Ledger) -> Iterator[Fix]:
    names = ", ".join(f'"{name}"' for name in spec.built_alike)
    less = (knob("n_envs") - 1) * spec.built_alike_bytes
    yield Fix(
        change=f"memfit.dropins.build_once({names}) before the envs are made (at least so much), "
        "if no env changes what these give: none did in its first steps",
        ledger=resized(ledger, [ROW], lambda size: size - less),
        safe=True,
        estimated=True,
        changes=Changes(once=dict.fromkeys(spec.built_alike, True)),
    )


def _again(spec: RunSpec, ledger: Ledger) -> int:
    """The bytes of all envs but the first, as far as the row of envs has them."""
    held = row(ledger, ROW)
    if held is None or not spec.built_alike:
        return 0
    again = (ledger.knobs.get("n_envs", 1) - 1) * spec.built_alike_bytes
    return min(again, ledger.bytes_of(held))
