"""MF001: the replay buffer is larger than the run ever fills.

What: `buffer_size` is larger than `total_timesteps`, so part of the replay is never written.

Why: numpy asks the kernel for zeroed pages, and a page that nobody writes costs no memory. So this
is no danger here: the rest is reserved, not resident. It does cost where the system counts reserved
memory (`ulimit -v`, strict overcommit), and saving the replay writes all of it.

Bad:
    from stable_baselines3 import DQN

    model = DQN("CnnPolicy", env, buffer_size=1_000_000)
    model.learn(50_000)

Good:
    from stable_baselines3 import DQN

    model = DQN("CnnPolicy", env, buffer_size=50_000)
    model.learn(50_000)
"""

from __future__ import annotations

from collections.abc import Iterator

from memfit.checks._rows import total
from memfit.checks._sb3 import models
from memfit.checks.spot import Spot
from memfit.model import Changes, Finding, Fix, Kind, Ledger, RunSpec, Severity
from memfit.syntax import Source, argument
from memfit.units import format_bytes

CODE = "MF001"
SEVERITY = Severity.INFO


def find_in_source(source: Source) -> Iterator[Spot]:
    for model in models(source):
        given = argument(model.call, "buffer_size", 3)
        size, steps = model.buffer_size, model.total
        if given is not None and not model.on_policy and size and steps and steps < size:
            yield Spot(
                given,
                f"the replay has room for {size:,} steps, and the run ends after {steps:,}",
                f"buffer_size={steps}",
            )


def find(spec: RunSpec, ledger: Ledger, limit: int) -> Iterator[Finding]:
    size, steps = ledger.knobs.get("buffer_size", 0), ledger.knobs.get("total_timesteps", 0)
    if spec.on_policy or not 0 < steps < size:
        return
    rows = [c for c in ledger.components if c.kind is Kind.BUFFER and c.reserved is not None]
    used = total(ledger, rows)
    held = sum(c.reserved.evaluate(ledger.knobs) for c in rows if c.reserved is not None)
    if held == used:
        return
    yield Finding(
        code=CODE,
        severity=Severity.INFO,
        message=f"the replay has room for {size:,} steps and the run ends after {steps:,}: "
        f"{format_bytes(held)} are reserved, {format_bytes(used)} become resident",
        where="model.replay_buffer",
        bytes=held - used,
    )


def fix(spec: RunSpec, ledger: Ledger) -> Iterator[Fix]:
    steps = ledger.knobs["total_timesteps"]
    yield Fix(
        change=f"buffer_size={steps}",
        ledger=ledger.at(buffer_size=steps),
        changes=Changes(knobs={"buffer_size": steps}),
        safe=steps % max(1, ledger.knobs.get("n_envs", 1)) == 0,  # else it is full before the end
    )
