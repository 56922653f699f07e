"""An explanation of a live process tree as blocks and as JSON."""

from __future__ import annotations

from typing import Any

from memfit.model import Component, Explanation, Grown, Inside, ProcessView
from memfit.model.json_loader import to_json
from memfit.render.blocks import (
    Block,
    Heading,
    Text,
    Tone,
    bars,
    muted,
    names,
    numbers,
    section,
)
from memfit.render.check import advice_json, advice_line, explain_command
from memfit.render.result_json import SCHEMA, component_json, picked
from memfit.units import MIB, format_bytes, shortened

_LEAST = 0.05 * MIB  # smaller rows are summed up in a line
_MOST_PROCESSES = 12
_COMMAND = 100  # characters
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
    """All of it: what holds the memory, by row; what grows; threads; settings; processes."""
    blocks: list[Block] = [*headline(explanation)]
    if explanation.growth_seconds:
        blocks += growth_blocks(explanation, _MOST_HOLDERS)
    if explanation.inside is not None:
        blocks += _inside(explanation.inside)
    blocks += advice_blocks(explanation)
    blocks += _ledger(explanation)
    if len(explanation.processes) > 1:
        blocks += _processes(explanation)
    blocks += _threads(explanation)
    blocks += _settings(explanation)
    if explanation.device_bytes:
        rows = ((n, format_bytes(b)) for n, b in explanation.device_bytes.items())
        blocks += section("Device memory", ("device", "bytes"), rows)
    return blocks + muted(explanation.notes)


def headline(explanation: Explanation) -> list[Block]:
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
    command = shortened(main.command or main.name, _COMMAND)
    facts = (
        f"{main.pid}: {command}; runs for {format_seconds(main.seconds)}; "
        f"{main.threads} threads; {format_bytes(main.reserved)} of address space; "
        f"{explanation.named_share:.1%} named; read in {explanation.seconds:.1f} s"
    )
    return [
        Text("; ".join([text, *extra]), Tone.BAD if over else Tone.GOOD),
        Text(facts, Tone.MUTED),
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
    held = sum(map(ledger.bytes_of, ledger.components))
    kinds = ledger.bytes_by(lambda c: c.kind).items()
    blocks: list[Block] = [
        Heading("By kind"),
        bars(((k, amount) for k, amount in kinds if amount >= _LEAST), picture="composition"),
        *section(
            "Every row, resident (PSS)",
            (names("component"), *numbers("MiB", "share", "of reserved"), "evidence"),
            (_row(explanation, component, total) for component in shown),
            total=("total", f"{held / MIB:,.1f}", f"{held / total:.1%}", "", ""),
        ),
    ]
    if small:
        amount = format_bytes(sum(ledger.bytes_of(c) for c in small))
        rows = f"{len(small)} smaller rows, together" if len(small) > 1 else "one smaller row of"
        blocks += muted([f"and {rows} {amount}"])
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


def growth_blocks(explanation: Explanation, most: int) -> list[Block]:
    """What changed between two readings, up to so many rows."""
    seconds = explanation.growth_seconds
    rows = [g for g in explanation.growth if abs(g.bytes) >= 4096]
    if not rows:
        return [Text(f"Nothing grew within {seconds:.1f} s.", Tone.GOOD)]
    return section(
        f"What changed within {seconds:.1f} s",
        (names("component"), *numbers("grew by", "a second", "now")),
        map(_grown, rows[:most]),
    )


def _grown(row: Grown) -> tuple[str, ...]:
    each = format_bytes(round(row.bytes_per_second))
    return row.name, format_bytes(row.bytes), each, format_bytes(row.after)


def _inside(inside: Inside) -> list[Block]:
    rows = (
        (
            h.path,
            f"{h.bytes / MIB:,.1f}",
            f"{h.reserved / MIB:,.1f}" if h.reserved > h.bytes else "",
            f"{h.count:,}",
            h.what + (f"; also {', '.join(h.also)}" if h.also else ""),
        )
        for h in inside.holders[:_MOST_HOLDERS]
    )
    columns = (names("holder"), *numbers("MiB", "of reserved", "count"), "what")
    cost = f"{inside.held_share:.1%} of private memory has a holder; "
    if inside.asked:
        cost += (
            f"the process was slowed down for {inside.seconds:.2f} s and stood still for at most "
            f"{1000 * inside.longest_hold_seconds:.0f} ms at a time"
        )
    else:
        cost += "its objects were read from outside: it was neither asked nor stopped"
    by = "by the process itself" if inside.asked else "read from outside"
    blocks = section(f"Who holds it, {by}", columns, rows)
    blocks += muted([cost, _readings(inside)])
    if inside.repeated:
        blocks += section(
            "Held more than once, or wider than needed",
            (*numbers("saves"), names("holders", whole=False), "why"),
            (
                (format_bytes(r.saves_bytes), ", ".join(r.holders), r.message)
                for r in inside.repeated
            ),
        )
    return blocks + muted(inside.notes)


def advice_blocks(explanation: Explanation) -> list[Block]:
    """What would save memory of what is there now; nothing where no row matches a fix."""
    if not explanation.advice:
        return []
    lines = [Text(advice_line(a), copy=explain_command(a.code)) for a in explanation.advice]
    return [Heading("What would save memory"), *lines]


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
    columns = (*numbers("PID", "PSS", "private", "RSS", "threads"), "command")
    blocks = section("Processes", columns, map(_process, largest[:_MOST_PROCESSES]))
    if rest := largest[_MOST_PROCESSES:]:
        amount = format_bytes(sum(p.pss for p in rest))
        blocks += muted([f"and {len(rest)} more, together {amount}"])
    return blocks


def _process(process: ProcessView) -> tuple[str, ...]:
    return (
        str(process.pid),
        format_bytes(process.pss),
        format_bytes(process.private),
        format_bytes(process.rss),
        str(process.threads),
        shortened(process.command or process.name, _COMMAND),
    )


def _threads(explanation: Explanation) -> list[Block]:
    stacks = numbers("threads", "stacks resident", "of reserved")
    return section(
        "Threads",
        ("pool", *stacks, "started by"),
        (
            (
                pool.name,
                str(pool.threads),
                format_bytes(pool.resident),
                format_bytes(pool.reserved),
                STARTS.get(pool.name, ""),
            )
            for pool in explanation.pools.values()
        ),
    )


def _settings(explanation: Explanation) -> list[Block]:
    rows = ((s.name, s.configured, s.used) for s in explanation.settings)
    return section("Configured against used", ("setting", "configured", "used"), rows)


def explain_json(explanation: Explanation) -> dict[str, Any]:
    """What `memfit explain --format json` prints."""
    ledger = explanation.ledger
    return {
        "schema": SCHEMA,
        "kind": "explain",
        "pid": explanation.pid,
        "command": explanation.main.command,
        "pss_bytes": explanation.pss_bytes,
        "named_share": round(explanation.named_share, 6),
        "limit_bytes": explanation.limit.bytes,
        "limit_source": explanation.limit.source,
        "headroom_bytes": explanation.headroom_bytes,
        "fits": explanation.pss_bytes <= explanation.limit.bytes,
        "age_seconds": round(explanation.main.seconds, 3),
        **picked(explanation, "unattributed_bytes", "huge_bytes", "swapped_bytes", "device_bytes"),
        "components": [component_json(ledger, c) for c in ledger.components],
        "processes": [_process_json(p) for p in explanation.processes],
        "settings": to_json(explanation.settings),
        "inside": None if explanation.inside is None else inside_json(explanation.inside),
        "advice": [advice_json(one) for one in explanation.advice],
        "growth_seconds": round(explanation.growth_seconds, 3),
        "growth": [
            {
                "name": row.name,
                "bytes": row.bytes,
                "bytes_per_second": round(row.bytes_per_second, 1),
                "now_bytes": row.after,
            }
            for row in explanation.growth
        ],
        "notes": list(explanation.notes),
        "seconds": round(explanation.seconds, 3),
    }


def _process_json(process: ProcessView) -> dict[str, Any]:
    sizes = {"reserved_bytes": "reserved", "private_bytes": "private"}
    pool = {"pool": "name", "threads": "threads", "names": "names"}
    stacks = {"bytes": "resident", "reserved_bytes": "reserved"}
    return {
        **picked(process, "pid", "parent", "name", "command"),
        "age_seconds": round(process.seconds, 3),
        **picked(process, rss_bytes="rss", pss_bytes="pss"),
        **picked(process, private_bytes="private", reserved_bytes="reserved"),
        "threads": [picked(p, **pool, **stacks) for p in process.pools],
        "parts": [picked(part, "name", "layer", "bytes", **sizes) for part in process.parts],
    }


def inside_json(inside: Inside) -> dict[str, Any]:
    """What the processes themselves told."""
    return {
        "held_share": round(inside.held_share, 6),
        "seconds": round(inside.seconds, 3),
        "longest_hold_seconds": round(inside.longest_hold_seconds, 6),
        "readings": {
            "taken": inside.taken,
            "dropped": inside.dropped,
            "first_held_share": round(inside.first_held_share, 6),
            "processes": [
                {
                    "pid": r.pid,
                    "held_shares": [round(share, 6) for share in r.held_shares],
                    "kept": r.kept,
                }
                for r in inside.readings
            ],
        },
        "pids": list(inside.asked),
        "outside_pids": list(inside.outside),
        "pools": dict(inside.pools),
        "holders": [
            {
                **picked(h, "path", "kind", "bytes", reserved_bytes="reserved"),
                **picked(h, "count", "what", "also", "pid"),
            }
            for h in inside.holders
        ],
        "repeated": to_json(inside.repeated),
        "notes": list(inside.notes),
    }
