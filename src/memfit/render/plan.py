"""A plan as blocks: the verdict first, then why."""

from __future__ import annotations

from collections.abc import Iterator

from memfit.model import Component, Kind, Plan
from memfit.render.blocks import Bar, Bars, Block, Column, Heading, Table, Text, Tone
from memfit.units import MIB, format_bytes

# Rows below a tenth of a MiB are named together where there are many.
SMALL = MIB // 10

_WORDS = {
    Kind.ENV_STATE: "environments",
    Kind.BUFFER: "buffers",
    Kind.PARAMETERS: "network parameters",
    Kind.OPTIMIZER: "optimizer state",
    Kind.SCRATCH: "kernel scratch",
    Kind.COPIES: "copies of data",
    Kind.BASE: "libraries and their start-up",
    Kind.WORKER: "worker processes",
    Kind.STACKS: "thread stacks",
    Kind.FRAGMENTATION: "allocator slack",
    Kind.UNATTRIBUTED: "memory that no row explains",
}

ON_A_CARD = (
    "A card's row counts networks, gradients, optimizer, activations, minibatch and an assumed "
    "CUDA context of 500 MiB; the machine around it needs RAM for the rest."
)


def plan_blocks(plan: Plan) -> list[Block]:
    """What `memfit plan` shows."""
    return [
        Text(text=verdict(plan), tone=Tone.GOOD if plan.fits else Tone.BAD),
        Text(text=_run(plan), tone=Tone.MUTED),
        *_crossing(plan),
        *_at_peak(plan),
        *_phases(plan),
        *_not_alive(plan),
        *_capacity(plan),
        *_findings(plan),
        *_advice(plan),
        *_notes(plan),
    ]


def verdict(plan: Plan) -> str:
    """One sentence: whether it fits, in what, when the peak comes and of what it consists."""
    peak, upper = format_bytes(plan.peak_bytes), format_bytes(plan.upper_bytes)
    limit = format_bytes(plan.limit.bytes)
    room = f"{limit} RAM" if plan.limit.source == "RAM" else f"{limit} ({plan.limit.source})"
    if not plan.fits:
        head = f"Does not fit: peak {peak} (at most {upper}), and there is only {room}"
    elif plan.upper_bytes > plan.limit.bytes:
        head = f"Fits, but barely: peak {peak} of {room}, and it may be as much as {upper}"
    else:
        head = f"Fits: peak {peak} (at most {upper}) of {room}"
    return f"{head}; the peak comes in {plan.ledger.peak.phase}, {_mostly(plan)}"


def _mostly(plan: Plan) -> str:
    kinds: dict[Kind, int] = {}
    for component in _alive(plan):
        kinds[component.kind] = kinds.get(component.kind, 0) + plan.ledger.bytes_of(component)
    if not kinds:
        return "and nothing is known of it"
    top = max(kinds, key=lambda kind: kinds[kind])
    share = kinds[top] / max(1, sum(kinds.values()))
    words = _WORDS.get(top, top.value)
    return f"mostly {words}" if share >= 0.5 else f"the largest part {words} ({share:.0%})"


def _run(plan: Plan) -> str:
    spec = plan.spec
    name = " ".join(part for part in (spec.algorithm, spec.policy) if part)
    library = " ".join(part for part in (spec.library, spec.version) if part)
    knobs = ", ".join(f"{k} {v:,}" for k, v in plan.ledger.knobs.items())
    changed = ", ".join(f"{k}={v}" for k, v in plan.changed.items())
    parts = [
        f"{plan.target}: {name} ({library})",
        f"with {knobs}" if knobs else "",
        f"what if {changed}" if changed else "",
        f"planned by {plan.method} in {plan.seconds:.1f} s",
    ]
    return "; ".join(part for part in parts if part)


def _crossing(plan: Plan) -> Iterator[Block]:
    if plan.crossing is None:
        return
    at, name = plan.crossing, plan.crossing.because
    ledger = plan.ledger
    fills = any(c.name == name and ledger.length in c.size.knobs for c in ledger.components)
    why = f"{name} is still filling then" if fills else f"its largest part is {name}"
    text = f"It dies at environment step {at.step:,}, in {at.moment}, because {why}."
    yield Text(text=text, tone=Tone.BAD)


def _at_peak(plan: Plan) -> Iterator[Block]:
    ledger, total = plan.ledger, plan.ledger.peak.bytes
    shown, small = _apart(plan, _alive(plan))
    rows = tuple(
        (
            c.name,
            _mib_of(plan, c),
            _share(ledger.bytes_of(c), total),
            *_one_more(plan, [c]),
            _formula(c),
            str(c.evidence),
        )
        for c in shown
    )
    yield Heading(text=f"Alive at the peak, in {ledger.peak.moment}")
    columns = (
        Column(name="component", code=True, whole=True),
        Column(name="MiB", number=True),
        Column(name="share", number=True),
        *((Column(name=f"bytes / {plan.per}", number=True),) if plan.per else ()),
        Column(name="formula (bytes)", code=True),
        Column(name="evidence"),
    )
    each = _one_more(plan, _alive(plan))
    yield Table(columns=columns, rows=rows, total=("total", _mib(total), "100.0%", *each, "", ""))
    yield from _small(plan, small)


def _one_more(plan: Plan, components: list[Component]) -> tuple[str, ...]:
    """What one more of the setting that was asked for adds to these rows; nothing if none was."""
    if not plan.per:
        return ()
    return (f"{sum(plan.ledger.one_more(c, plan.per) for c in components):,}",)


def _phases(plan: Plan) -> Iterator[Block]:
    phases, winner = plan.ledger.phase_bytes, plan.ledger.peak.phase
    largest = max(phases.values(), default=0)
    yield Heading(text="Phases")
    yield Bars(
        bars=tuple(
            Bar(
                label=phase,
                amount=format_bytes(amount),
                share=amount / largest if largest else 0.0,
                mark="the peak" if phase == winner else "",
            )
            for phase, amount in phases.items()
        )
    )


def _not_alive(plan: Plan) -> Iterator[Block]:
    alive = set(map(id, _alive(plan)))
    others = [c for c in plan.ledger.components if id(c) not in alive]
    if not others:
        return
    shown, small = _apart(plan, others)
    yield Heading(text="Not alive at the peak")
    columns = (
        Column(name="component", code=True, whole=True),
        Column(name="MiB", number=True),
        Column(name="alive in"),
        Column(name="formula (bytes)", code=True),
        Column(name="evidence"),
    )
    rows = tuple(
        (c.name, _mib_of(plan, c), ", ".join(c.phases), _formula(c), str(c.evidence)) for c in shown
    )
    if rows:
        yield Table(columns=columns, rows=rows, tone=Tone.MUTED)
    yield from _small(plan, small)


def _apart(plan: Plan, components: list[Component]) -> tuple[list[Component], list[Component]]:
    """Rows to show in full, and many small ones that would bury them; both by size."""
    ordered = sorted(components, key=lambda c: (-plan.ledger.bytes_of(c), c.name))
    small = [c for c in ordered if _held(plan, c) < SMALL]
    if len(small) < 3:
        return ordered, []
    return [c for c in ordered if _held(plan, c) >= SMALL], small


def _small(plan: Plan, components: list[Component]) -> Iterator[Block]:
    if components:
        names = ", ".join(c.name for c in components)
        amount = _mib(sum(map(plan.ledger.bytes_of, components)))
        text = f"and {len(components)} rows below 0.1 MiB, together {amount} MiB: {names}"
        yield Text(text=text, tone=Tone.MUTED)


def _capacity(plan: Plan) -> Iterator[Block]:
    if not plan.capacity:
        return
    knobs = list(dict.fromkeys(name for row in plan.capacity for name in row.largest))
    yield Heading(text="Largest value of each setting that fits, the others as they are")
    columns = (
        Column(name="hardware"),
        Column(name="memory", number=True),
        Column(name="peak there", number=True),
        Column(name="fits"),
        *(Column(name=name, number=True) for name in knobs),
    )
    rows = tuple(
        (
            row.hardware,
            format_bytes(row.bytes),
            format_bytes(row.peak_bytes),
            "yes" if row.fits else "no",
            *(_largest(row.largest[k]) if k in row.largest else "none" for k in knobs),
        )
        for row in plan.capacity
    )
    yield Table(columns=columns, rows=rows)
    if any(row.place == "device" for row in plan.capacity):
        yield Text(text=ON_A_CARD, tone=Tone.MUTED)


def _largest(value: int | None) -> str:
    return "any" if value is None else f"{value:,}"


def _findings(plan: Plan) -> Iterator[Block]:
    if not plan.findings:
        return
    yield Heading(text="Findings")
    columns = tuple(Column(name=name) for name in ("severity", "code", "finding", "where"))
    rows = tuple((f.severity.value, f.code, f.message, f.where) for f in plan.findings)
    yield Table(columns=columns, rows=rows)


def _advice(plan: Plan) -> Iterator[Block]:
    if not plan.advice:
        return
    yield Heading(text="What would save memory")
    columns = (
        Column(name="saves", number=True),
        Column(name="change"),
        Column(name="by"),
        Column(name="code"),
    )
    rows = tuple(
        (
            format_bytes(a.saves_bytes),
            a.change,
            "measurement" if a.verified else "formula",
            a.code,
        )
        for a in sorted(plan.advice, key=lambda a: -a.saves_bytes)
    )
    yield Table(columns=columns, rows=rows)


def _notes(plan: Plan) -> Iterator[Block]:
    if plan.notes:
        yield Heading(text="Notes")
        for note in plan.notes:
            yield Text(text=f"- {note}")


def _alive(plan: Plan) -> list[Component]:
    moment = plan.ledger.peak.moment
    return [c for c in plan.ledger.components if c.alive_in(moment)]


def _held(plan: Plan, component: Component) -> int:
    """What a row holds, address space included."""
    amount = plan.ledger.bytes_of(component)
    if component.reserved is None:
        return amount
    return max(amount, component.reserved.evaluate(plan.ledger.knobs))


def _mib_of(plan: Plan, component: Component) -> str:
    """`12.0`, or `12.0 of 800.0` where more address space is held than is resident."""
    amount, held = plan.ledger.bytes_of(component), _held(plan, component)
    return _mib(amount) if held == amount else f"{_mib(amount)} of {_mib(held)}"


def _share(amount: int, total: int) -> str:
    return f"{amount / total:.1%}" if total else ""


def _mib(amount: int) -> str:
    return "<0.1" if 0 < amount < SMALL else f"{amount / MIB:,.1f}"


def _formula(component: Component) -> str:
    return "fixed" if component.size.is_const else str(component.size)
