"""A plan as blocks, the verdict first, then why; and as JSON, on which schedulers rely."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

from memfit.errors import visible_line
from memfit.model import Advice, Component, Kind, Plan, least_worth
from memfit.render.blocks import Block, Heading, Text, Tone, bars, muted, names, numbers, section
from memfit.render.check import explain_command, training_word
from memfit.render.plan_device import card_blocks, card_json
from memfit.render.result_json import SCHEMA, component_json, picked
from memfit.units import MIB, format_bytes

_FORMULA = names("formula (bytes)", whole=False)
_SETTING = re.compile(r"(?P<knob>[a-z_]+)=(?P<value>\d[\d_]*)\b")
# Rows below a tenth of a MiB are named together where there are many.
SMALL = MIB // 10

KIND_WORDS = {
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
        Text(verdict(plan), Tone.GOOD if plan.fits_machine else Tone.BAD),
        Text(_run(plan), Tone.MUTED),
        *muted(_other_settings(plan)),
        *_crossing(plan),
        *card_blocks(plan),
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
    if not plan.fits_machine:
        head = f"Does not fit: peak {peak} (at most {upper}), and there is only {room}"
    elif plan.upper_bytes > plan.limit.bytes:
        head = f"Fits, but barely: peak {peak} of {room}, and it may be as much as {upper}"
    else:
        head = f"Fits: peak {peak} (at most {upper}) of {room}"
    return f"{head}; the peak comes in {plan.ledger.peak.phase}, {_mostly(plan)}"


def _mostly(plan: Plan) -> str:
    kinds = plan.ledger.with_rows(_alive(plan)).bytes_by(lambda c: c.kind)
    if not kinds:
        return "and nothing is known of it"
    top = next(iter(kinds))
    share = kinds[top] / max(1, sum(kinds.values()))
    words = KIND_WORDS.get(top, top.value)
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


def _other_settings(plan: Plan) -> list[str]:
    """Settings that are in no formula."""
    others = {k: v for k, v in plan.spec.settings.items() if k not in plan.ledger.knobs}
    told = ", ".join(f"{k} {v:,}" for k, v in others.items())
    return [f"--set also tries other values of {told}"] if told else []


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
    rows = (
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
    more = numbers(f"bytes / {plan.per}") if plan.per else ()
    each = _one_more(plan, _alive(plan))
    yield from section(
        f"Alive at the peak, in {ledger.peak.moment}",
        (names("component"), *numbers("MiB", "share"), *more, _FORMULA, "evidence"),
        rows,
        total=("total", _mib(total), "100.0%", *each, "", ""),
    )
    yield from _small(plan, small)


def _one_more(plan: Plan, components: list[Component]) -> tuple[str, ...]:
    """What one more of the setting that was asked for adds to these rows; nothing if none was."""
    if not plan.per:
        return ()
    return (f"{sum(plan.ledger.one_more(c, plan.per) for c in components):,}",)


def _phases(plan: Plan) -> Iterator[Block]:
    phases, winner = plan.ledger.phase_bytes, plan.ledger.peak.phase
    yield Heading("Phases")
    yield bars(phases.items(), [list(phases).index(winner)] if phases else (), picture="moments")


def _not_alive(plan: Plan) -> Iterator[Block]:
    alive = set(map(id, _alive(plan)))
    others = [c for c in plan.ledger.components if id(c) not in alive]
    if not others:
        return
    shown, small = _apart(plan, others)
    rows = (
        (c.name, _mib_of(plan, c), ", ".join(c.phases), _formula(c), str(c.evidence)) for c in shown
    )
    columns = (names("component"), *numbers("MiB"), "alive in", _FORMULA, "evidence")
    yield from section("Not alive at the peak", columns, rows, tone=Tone.MUTED)
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
        told = ", ".join(c.name for c in components)
        amount = _mib(sum(map(plan.ledger.bytes_of, components)))
        count = len(components)
        yield from muted([f"and {count} rows below 0.1 MiB, together {amount} MiB: {told}"])


def _capacity(plan: Plan) -> Iterator[Block]:
    if not plan.capacity:
        return
    knobs = list(dict.fromkeys(name for row in plan.capacity for name in row.largest))
    rows = (
        (
            row.hardware,
            format_bytes(row.bytes),
            format_bytes(row.peak_bytes),
            "yes" if row.fits else "no",
            *(_largest(row.largest[k]) if k in row.largest else "none" for k in knobs),
        )
        for row in plan.capacity
    )
    yield from section(
        "Largest value of each setting that fits, the others as they are",
        ("hardware", *numbers("memory", "peak there"), "fits", *numbers(*knobs)),
        rows,
    )
    if plan.device is None and any(row.place == "device" for row in plan.capacity):
        yield from muted([ON_A_CARD])


def _largest(value: int | None) -> str:
    return "any" if value is None else f"{value:,}"


def _findings(plan: Plan) -> Iterator[Block]:
    if plan.findings:
        rows = ((f.severity.value, f.code, f.message, f.where) for f in plan.findings)
        copies = (explain_command(f.code) for f in plan.findings)
        columns = ("severity", "code", "finding", "where")
        yield from section("Findings", columns, rows, copies=copies)
    if plan.hidden_findings:
        least, count = format_bytes(least_worth(plan.peak_bytes)), plan.hidden_findings
        many = "findings about less than {} are" if count > 1 else "finding about less than {} is"
        yield from muted([f"{count} {many.format(least)} not shown: --all-findings shows all"])


def _advice(plan: Plan) -> Iterator[Block]:
    if plan.advice:
        largest = sorted(plan.advice, key=lambda a: -a.saves_bytes)
        rows = (
            (
                format_bytes(a.saves_bytes),
                f"{a.change}; {a.costs}" if a.costs else a.change,
                training_word(a),
                "measurement" if a.verified else "formula",
                a.code,
            )
            for a in largest
        )
        columns = (*numbers("saves"), "change", "training", "by", "code")
        copies = (_try_command(plan, a) for a in largest)
        yield from section("What would save memory", columns, rows, copies=copies)


def _try_command(plan: Plan, advice: Advice) -> str:
    """What plans the run with this change, where it is a setting; else what explains it."""
    found = _SETTING.match(advice.change)
    if found and found["knob"] in plan.ledger.knobs and plan.target:
        target = shlex.quote(visible_line(plan.target))
        return f"memfit plan {target} --set {found['knob']}={found['value']}"
    return explain_command(advice.code)


def _notes(plan: Plan) -> Iterator[Block]:
    if plan.notes:
        yield Heading("Notes")
        for note in plan.notes:
            yield Text(f"- {note}")


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


def plan_json(plan: Plan) -> dict[str, Any]:
    """What `memfit plan --format json` prints."""
    ledger = plan.ledger
    return {
        "schema": SCHEMA,
        "kind": "plan",
        **picked(plan, "target", "fits", "peak_bytes", "upper_bytes", "unattributed_bytes"),
        "limit_bytes": plan.limit.bytes,
        "limit_source": plan.limit.source,
        "method": plan.method,
        "doubt": dict(plan.doubt),
        "peak_moment": ledger.peak.moment,
        "phases": ledger.phase_bytes,
        "moments": ledger.moment_bytes,
        "components": [
            component_json(part, c, plan.per)
            for part in (ledger, *([plan.device.ledger] if plan.device else []))
            for c in part.components
        ],
        **({"device": card_json(plan.device)} if plan.device else {}),
        "knobs": {**plan.spec.settings, **ledger.knobs},
        "changed": dict(plan.changed),
        "per": plan.per or None,
        **picked(plan, "capacity", "crossing", "findings", "hidden_findings", "advice"),
        "run": picked(plan.spec, "library", "version", "algorithm", "policy"),
        **picked(plan, "confinement", "network"),
        "notes": list(plan.notes),
        "seconds": round(plan.seconds, 3),
        "planner_peak_bytes": plan.planner_peak_bytes,
    }
