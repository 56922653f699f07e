"""An explanation on two screens: verdict, what holds most, and the rest in one row."""

from __future__ import annotations

from memfit.model import Component, Explanation, Inside
from memfit.render.blocks import Block, Text, muted, names, numbers, section
from memfit.render.explain import advice_blocks, growth_blocks, headline
from memfit.units import MIB, format_bytes, shortened

_LEAST = 0.01  # of all memory, for a row of its own
_MOST_ROWS, _MOST_GROWN, _MOST_REPEATED, _MOST_PROCESSES = 20, 8, 4, 5
_NAME, _WHY, _COMMAND = 40, 38, 46  # characters: two lines at most on 80 columns


def explain_short(explanation: Explanation) -> list[Block]:
    """Each thing once: who holds it where that is known, else what it is."""
    blocks = headline(explanation)
    if explanation.growth_seconds:
        blocks += growth_blocks(explanation, _MOST_GROWN)
    blocks += _rows(explanation)
    if explanation.inside is not None:
        blocks += _inside(explanation.inside)
    blocks += advice_blocks(explanation)
    if len(explanation.processes) > 1:
        blocks += _processes(explanation)
    blocks += muted([_threads(explanation)])
    if explanation.device_bytes:
        held = (f"{name} {format_bytes(b)}" for name, b in explanation.device_bytes.items())
        blocks.append(Text(f"on devices: {', '.join(held)}"))
    return blocks + muted([*explanation.notes, "every row, threads and settings: --all"])


def _rows(explanation: Explanation) -> list[Block]:
    ledger, total = explanation.ledger, max(1, explanation.pss_bytes)
    large = [c for c in ledger.components if ledger.bytes_of(c) >= _LEAST * total][:_MOST_ROWS]
    held = sum(map(ledger.bytes_of, ledger.components))
    rest = held - sum(map(ledger.bytes_of, large))
    rows = [_row(explanation, component, total) for component in large]
    if rest:
        count = len(ledger.components) - len(large)
        word = "row" if count == 1 else "rows"
        rows.append((f"{count} smaller {word}", _mib(rest), f"{rest / total:.1%}", "", ""))
    return section(
        "What holds it, resident (PSS)",
        (names("component"), *numbers("MiB", "share", "of reserved"), "what"),
        rows,
        total=("total", _mib(held), f"{held / total:.1%}", "", ""),
    )


def _row(explanation: Explanation, component: Component, total: int) -> tuple[str, ...]:
    amount = explanation.ledger.bytes_of(component)
    reserved = component.reserved.evaluate({}) if component.reserved is not None else amount
    return (
        shortened(component.name, _NAME),
        _mib(amount),
        f"{amount / total:.1%}",
        _mib(reserved) if reserved > amount else "",
        shortened(component.evidence.where, _WHY),
    )


def _mib(amount: int) -> str:
    return f"{amount / MIB:,.1f}"


def _inside(inside: Inside) -> list[Block]:
    how = "told by the process itself" if inside.asked else "read from outside, without a pause"
    blocks = muted([f"{inside.held_share:.1%} of private memory has a holder, {how}"])
    if inside.repeated:
        blocks += section(
            "Held more than once, or wider than needed",
            (*numbers("saves"), names("holders", whole=False), "why"),
            (
                (
                    format_bytes(r.saves_bytes),
                    shortened(", ".join(r.holders), _WHY),
                    shortened(r.message, _WHY),
                )
                for r in inside.repeated[:_MOST_REPEATED]
            ),
        )
    return blocks + muted(inside.notes)


def _processes(explanation: Explanation) -> list[Block]:
    largest = sorted(explanation.processes, key=lambda p: -p.pss)
    shown, rest = largest[:_MOST_PROCESSES], largest[_MOST_PROCESSES:]
    blocks = section(
        "Processes",
        (*numbers("PID", "PSS", "threads"), "command"),
        (
            (
                str(p.pid),
                format_bytes(p.pss),
                str(p.threads),
                shortened(p.command or p.name, _COMMAND),
            )
            for p in shown
        ),
    )
    if rest:
        amount = format_bytes(sum(p.pss for p in rest))
        blocks += muted([f"and {len(rest)} more, together {amount}"])
    return blocks


def _threads(explanation: Explanation) -> str:
    """All pools in a line, and settings that the program itself has outdone."""
    pools = ", ".join(f"{pool.threads} {pool.name}" for pool in explanation.pools.values())
    outdone = [
        f"{s.name} {s.configured}" for s in explanation.settings if s.configured.endswith("itself")
    ]
    return "; ".join([f"threads: {pools}", *outdone])
