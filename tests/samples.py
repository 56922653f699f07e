"""Plans made by hand: small runs whose every byte is known."""

from __future__ import annotations

from memfit.analyses.capacity import capacity, parse_hardware
from memfit.analyses.crossing import crossing
from memfit.model import (
    Advice,
    Component,
    Evidence,
    EvidenceKind,
    Finding,
    Kind,
    Ledger,
    Limit,
    Plan,
    RunSpec,
    Severity,
    Size,
    const,
    knob,
    minimum,
)
from memfit.units import GIB, MIB

ALWAYS = ("start", "build", "rollout", "update", "save")
TRAINING = ("build", "rollout", "update", "save")


def row(
    name: str,
    kind: Kind,
    size: Size,
    phases: tuple[str, ...],
    *,
    evidence: EvidenceKind = EvidenceKind.DERIVED,
    where: str = "model",
    reserved: Size | None = None,
) -> Component:
    return Component(
        name=name,
        kind=kind,
        size=size,
        phases=phases,
        evidence=Evidence(kind=evidence, where=where),
        reserved=reserved,
    )


def ppo_ledger() -> Ledger:
    """An on-policy run: the peak comes in one of two moments of its update."""
    rollout = knob("n_steps") * knob("n_envs")
    batch = minimum(knob("batch_size"), rollout)
    measured = EvidenceKind.MEASURED
    return Ledger(
        components=(
            row("import base", Kind.BASE, const(226 * MIB), ALWAYS, evidence=measured),
            row("env.state", Kind.ENV_STATE, knob("n_envs") * (2 * MIB), TRAINING),
            row(
                "rollout.observations",
                Kind.BUFFER,
                rollout * 84 * 84,
                ("rollout", "update", "save"),
                where="model.rollout_buffer.observations",
            ),
            row("rollout.flatten", Kind.COPIES, rollout * 84 * 84, ("update.flatten",)),
            row("policy.parameters", Kind.PARAMETERS, const(6_743_360), TRAINING),
            row("policy.gradients", Kind.GRADIENTS, const(6_743_360), ("update", "save")),
            row("optimizer.Adam", Kind.OPTIMIZER, const(13_486_720), ("update", "save")),
            row(
                "minibatch.observations",
                Kind.COPIES,
                batch * 84 * 84 * 4,
                ("update.minibatch",),
            ),
            row(
                "policy.activations",
                Kind.ACTIVATIONS,
                batch * 1_200_000,
                ("update.minibatch",),
                evidence=EvidenceKind.PROBED,
                where="two updates at batch 16 and 32",
            ),
            row(
                "thread stacks",
                Kind.STACKS,
                const(300_000),
                ALWAYS,
                evidence=EvidenceKind.ASSUMED,
                where="tens of KiB a thread",
                reserved=const(16 * MIB),
            ),
            row("checkpoint", Kind.COPIES, const(20_230_080), ("save",)),
        ),
        knobs={"n_envs": 8, "n_steps": 256, "batch_size": 64, "total_timesteps": 1_000_000},
        length="total_timesteps",
        first_update=rollout,
    )


def dqn_ledger() -> Ledger:
    """An off-policy run: its replay fills while it runs."""
    filled = minimum(knob("buffer_size"), knob("total_timesteps"))
    return Ledger(
        components=(
            row("import base", Kind.BASE, const(226 * MIB), ALWAYS),
            row(
                "replay.observations",
                Kind.BUFFER,
                filled * 84 * 84,
                ("rollout", "update"),
                reserved=knob("buffer_size") * 84 * 84,
            ),
            row("q_net.parameters", Kind.PARAMETERS, const(6_743_360), TRAINING),
            row(
                "q_net.activations",
                Kind.ACTIVATIONS,
                knob("batch_size") * 1_200_000,
                ("update",),
            ),
        ),
        knobs={"buffer_size": 1_000_000, "batch_size": 32, "total_timesteps": 10_000_000},
        length="total_timesteps",
    )


def _spec(ledger: Ledger, algorithm: str) -> RunSpec:
    return RunSpec(
        library="stable-baselines3",
        version="2.9.2",
        algorithm=algorithm,
        policy="CnnPolicy",
        knobs=ledger.knobs,
        on_policy=algorithm == "PPO",
    )


def ppo_plan() -> Plan:
    """A run that fits."""
    ledger = ppo_ledger()
    hardware = ("laptop-8gb", "rtx-4090", "300MiB")
    return Plan(
        target="train.py",
        spec=_spec(ledger, "PPO"),
        ledger=ledger,
        peak_bytes=ledger.peak.bytes,
        upper_bytes=ledger.peak.bytes * 108 // 100,
        limit=Limit(bytes=24 * GIB, source="RAM"),
        method="trace",
        capacity=tuple(capacity(ledger, parse_hardware(name)) for name in hardware),
        notes=("torch uses 2 threads",),
        seconds=2.3456,
        planner_peak_bytes=310 * MIB,
    )


def dqn_plan() -> Plan:
    """A run that dies late: its replay buffer grows over the limit."""
    ledger = dqn_ledger()
    limit = Limit(bytes=4 * GIB, source="--limit")
    return Plan(
        target="dqn.py",
        spec=_spec(ledger, "DQN"),
        ledger=ledger,
        peak_bytes=ledger.peak.bytes,
        upper_bytes=ledger.peak.bytes * 105 // 100,
        limit=limit,
        method="rehearsal",
        capacity=(capacity(ledger, parse_hardware("laptop-16gb")),),
        crossing=crossing(ledger, limit.bytes),
        findings=(
            Finding(
                code="replay-twice",
                severity=Severity.WARNING,
                message="observations are stored twice",
                where="dqn.py:12",
                bytes=6 * GIB,
            ),
        ),
        hidden_findings=2,
        advice=(
            Advice(code="smaller-replay", change="buffer_size=500_000", saves_bytes=3 * GIB),
            Advice(
                code="optimize-memory",
                change="optimize_memory_usage=True",
                saves_bytes=6 * GIB,
                safe=True,
                verified=True,
            ),
        ),
        seconds=12.0,
        changed={"batch_size": 32},
    )
