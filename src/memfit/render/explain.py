"""An explanation of a live process tree as blocks."""

from __future__ import annotations

from memfit.model import Component, Explanation, Grown, Inside, ProcessView
from memfit.render.blocks import Bar, Bars, Block, Column, Heading, Table, Text, Tone
from memfit.units import MIB, format_bytes

_LEAST = 0.05 * MIB  # smaller rows are summed up in a line
_MOST_PROCESSES = 12
_MOST_HOLDERS = 25
STARTS = {
    "main": "the program itself",
    "OpenMP": "torch's or another library's parallel loops: torch.set_num_threads, OMP_NUM_THREADS",
    "BLAS": "numpy's or scipy's matrix products: OPENBLAS_NUM_THREADS, MKL_NUM_THREADS",
    "TBB": "a library on Intel's thread building blocks",
    "CUDA": "the device driver",
    "torch": "torch itself: autograd on a device, data loaders, inter-op tasks",
    "libuv": "an event loop",
    "Python": "threading.Thread, or a pool of concurrent.futures",
    "other": "not found out",
}


def explain_blocks(explanation: Explanation) -> list[Block]:
    """What holds the memory, by row; what grows; threads; settings; processes."""
    blocks: list[Block] = [*_headline(explanation)]
    if explanation.growth_seconds:
        blocks += _growth(explanation)
    if explanation.inside is not None:
        blocks += _inside(explanation.inside)
    blocks += _ledger(explanation)
    if len(explanation.processes) > 1:
        blocks += _processes(explanation)
    blocks += _threads(explanation)
    blocks += _settings(explanation)
    if explanation.device_bytes:
        rows = tuple((n, format_bytes(b)) for n, b in explanation.device_bytes.items())
        blocks += [Heading(text="Device memory"), _table("device", "bytes", rows=rows)]
    blocks += [Text(text=note, tone=Tone.MUTED) for note in explanation.notes]
    return blocks


def _headline(explanation: Explanation) -> list[Block]:
    main, count = explanation.main, len(explanation.processes)
    over = explanation.pss_bytes > explanation.limit.bytes
    tree = f"{count} processes" if count > 1 else "one process"
    text = (
        f"{format_bytes(explanation.pss_bytes)} in {tree}; limit "
        f"{format_bytes(explanation.limit.bytes)} ({explanation.limit.source}), headroom "
        f"{format_bytes(explanation.headroom_bytes)}"
    )
    extra = []
    if explanation.swapped_bytes:
        extra.append(f"{format_bytes(explanation.swapped_bytes)} more swapped out")
    if explanation.huge_bytes:
        extra.append(f"{format_bytes(explanation.huge_bytes)} of it in huge pages")
    facts = (
        f"{main.pid}: {main.command or main.name}; runs for {format_seconds(main.seconds)}; "
        f"{main.threads} threads; {format_bytes(main.reserved)} of address space; "
        f"{explanation.named_share:.1%} named; read in {explanation.seconds:.1f} s"
    )
    return [
        Text(text="; ".join([text, *extra]), tone=Tone.BAD if over else Tone.GOOD),
        Text(text=facts, tone=Tone.MUTED),
    ]


def format_seconds(seconds: float) -> str:
    """A stretch of time for people."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _ledger(explanation: Explanation) -> list[Block]:
    ledger, total = explanation.ledger, max(1, explanation.pss_bytes)
    shown = [c for c in ledger.components if ledger.bytes_of(c) >= _LEAST]
    small = [c for c in ledger.components if c not in shown and ledger.bytes_of(c)]
    kinds = explanation.by_kind
    largest = max(kinds.values(), default=1) or 1
    blocks: list[Block] = [
        Heading(text="By kind"),
        Bars(
            bars=tuple(
                Bar(label=kind, amount=format_bytes(amount), share=amount / largest)
                for kind, amount in kinds.items()
                if amount >= _LEAST
            )
        ),
        Heading(text="Every row, resident (PSS)"),
        Table(
            columns=(
                Column(name="component", code=True, whole=True),
                Column(name="MiB", number=True),
                Column(name="share", number=True),
                Column(name="of reserved", number=True),
                Column(name="evidence"),
            ),
            rows=tuple(_row(explanation, component, total) for component in shown),
            total=(
                "total",
                f"{sum(ledger.bytes_of(c) for c in ledger.components) / MIB:,.1f}",
                f"{sum(ledger.bytes_of(c) for c in ledger.components) / total:.1%}",
                "",
                "",
            ),
        ),
    ]
    if small:
        amount = format_bytes(sum(ledger.bytes_of(c) for c in small))
        rows = f"{len(small)} smaller rows, together" if len(small) > 1 else "one smaller row of"
        blocks.append(Text(text=f"and {rows} {amount}", tone=Tone.MUTED))
    return blocks


def _row(explanation: Explanation, component: Component, total: int) -> tuple[str, ...]:
    amount = explanation.ledger.bytes_of(component)
    reserved = component.reserved.evaluate({}) if component.reserved is not None else amount
    of = f"{reserved / MIB:,.1f}" if reserved > amount else ""
    return (
        component.name,
        f"{amount / MIB:,.1f}",
        f"{amount / total:.1%}",
        of,
        component.evidence.where,
    )


def _growth(explanation: Explanation) -> list[Block]:
    seconds = explanation.growth_seconds
    rows = [g for g in explanation.growth if abs(g.bytes) >= 4096]
    if not rows:
        return [Text(text=f"Nothing grew within {seconds:.1f} s.", tone=Tone.GOOD)]
    return [
        Heading(text=f"What changed within {seconds:.1f} s"),
        Table(
            columns=(
                Column(name="component", code=True, whole=True),
                Column(name="grew by", number=True),
                Column(name="a second", number=True),
                Column(name="now", number=True),
            ),
            rows=tuple(_grown(g) for g in rows[:_MOST_HOLDERS]),
        ),
    ]


def _grown(grown: Grown) -> tuple[str, ...]:
    each = format_bytes(round(grown.bytes_per_second))
    return grown.name, format_bytes(grown.bytes), each, format_bytes(grown.after)


def _inside(inside: Inside) -> list[Block]:
    rows = [
        (
            h.path,
            f"{h.bytes / MIB:,.1f}",
            f"{h.reserved / MIB:,.1f}" if h.reserved > h.bytes else "",
            f"{h.count:,}",
            h.what + (f"; also {', '.join(h.also)}" if h.also else ""),
        )
        for h in inside.holders[:_MOST_HOLDERS]
    ]
    blocks: list[Block] = [
        Heading(text="Who holds it, by the process itself"),
        Table(
            columns=(
                Column(name="holder", code=True, whole=True),
                Column(name="MiB", number=True),
                Column(name="of reserved", number=True),
                Column(name="count", number=True),
                Column(name="what"),
            ),
            rows=tuple(rows),
        ),
        Text(
            text=f"{inside.held_share:.1%} of private memory has a holder; the process was slowed "
            f"down for {inside.seconds:.2f} s and stood still for at most "
            f"{1000 * inside.longest_hold_seconds:.0f} ms at a time",
            tone=Tone.MUTED,
        ),
        Text(text=_readings(inside), tone=Tone.MUTED),
    ]
    if inside.repeated:
        blocks += [
            Heading(text="Held more than once, or wider than needed"),
            Table(
                columns=(
                    Column(name="saves", number=True),
                    Column(name="holders", code=True),
                    Column(name="why"),
                ),
                rows=tuple(
                    (format_bytes(r.saves_bytes), ", ".join(r.holders), r.message)
                    for r in inside.repeated
                ),
            ),
        ]
    blocks += [Text(text=note, tone=Tone.MUTED) for note in inside.notes]
    return blocks


def _readings(inside: Inside) -> str:
    """How often it was read for that, and what the first reading would have said."""
    count = len(inside.readings)
    whole = "one process" if count == 1 else f"{count} processes"
    if not inside.dropped:
        return f"{whole} read once, no reading dropped"
    return (
        f"{whole} read {inside.taken} times in all, {inside.dropped} of these readings dropped for "
        f"one that leaves less without a holder: {inside.first_held_share:.1%} had one in the "
        f"first, {inside.held_share:.1%} in what is kept"
    )


def _processes(explanation: Explanation) -> list[Block]:
    largest = sorted(explanation.processes, key=lambda p: -p.pss)
    rows = tuple(_process(p) for p in largest[:_MOST_PROCESSES])
    blocks: list[Block] = [
        Heading(text="Processes"),
        Table(
            columns=(
                Column(name="PID", number=True),
                Column(name="PSS", number=True),
                Column(name="private", number=True),
                Column(name="RSS", number=True),
                Column(name="threads", number=True),
                Column(name="command"),
            ),
            rows=rows,
        ),
    ]
    if len(largest) > _MOST_PROCESSES:
        rest = largest[_MOST_PROCESSES:]
        amount = format_bytes(sum(p.pss for p in rest))
        blocks.append(Text(text=f"and {len(rest)} more, together {amount}", tone=Tone.MUTED))
    return blocks


def _process(process: ProcessView) -> tuple[str, ...]:
    return (
        str(process.pid),
        format_bytes(process.pss),
        format_bytes(process.private),
        format_bytes(process.rss),
        str(process.threads),
        process.command[:100] or process.name,
    )


def _threads(explanation: Explanation) -> list[Block]:
    return [
        Heading(text="Threads"),
        Table(
            columns=(
                Column(name="pool"),
                Column(name="threads", number=True),
                Column(name="stacks resident", number=True),
                Column(name="of reserved", number=True),
                Column(name="started by"),
            ),
            rows=tuple(
                (
                    pool.name,
                    str(pool.threads),
                    format_bytes(pool.resident),
                    format_bytes(pool.reserved),
                    STARTS.get(pool.name, ""),
                )
                for pool in explanation.pools.values()
            ),
        ),
    ]


def _settings(explanation: Explanation) -> list[Block]:
    rows = tuple((s.name, s.configured, s.used) for s in explanation.settings)
    return [
        Heading(text="Configured against used"),
        _table("setting", "configured", "used", rows=rows),
    ]


def _table(*names: str, rows: tuple[tuple[str, ...], ...]) -> Table:
    return Table(columns=tuple(Column(name=name) for name in names), rows=rows)
