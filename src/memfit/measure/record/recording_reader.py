"""Reads a recording, finished or still growing, whoever wrote it.

A file may come from anybody. Only tables are read, never what a file defines to be worked out
(views, generated columns, checks), and of them the columns that memfit writes. Bytes, rows and time
are bounded, and a value that cannot be is told with its place.
"""

from __future__ import annotations

import json
import os
import re
import reprlib
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memfit.errors import UsageError
from memfit.measure.record.recording import (
    APPLICATION,
    LATEST,
    LONGEST_TEXT,
    MOST_LEDGERS,
    MOST_READINGS,
    PATIENCE,
    SCHEMA,
    WHOLE,
)
from memfit.model import (
    Component,
    Event,
    EventKind,
    Evidence,
    EvidenceKind,
    Kind,
    Ledger,
    Limit,
    Member,
    Place,
    Reading,
    RowsAt,
    Trace,
    size,
)
from memfit.model.json_loader import from_json
from memfit.units import format_bytes

MOST_BYTES = 2**28  # of a file; memfit's own stay below 50 MB
_LONGEST = 2**24  # bytes of one value
_MOST_SECONDS = 20.0
_STEPS = 10_000  # of SQLite's machine between two looks at the clock
_WORKED_OUT = re.compile(r"\b(as|check|virtual)\b", re.IGNORECASE)

# The tables: how their rows are ordered, and how many there may be.
_TABLES = {
    "about": ("name", 10_000),
    "readings": ("id", 2 * MOST_READINGS),
    "events": ("id", 500_000),
    "ledgers": ("bytes DESC, id", 1000),
    "members": ("id", 2 * MOST_READINGS),
}
_LATER_TABLES, _LATER_COLUMNS = ("members",), ("files",)  # which older recordings do not have
_READING = ("seconds", "bytes", "processes", "threads", "step", "filling", "room", "files")
_MEMBER = ("pid", "name", "seconds", "bytes")
_EVENT = ("seconds", "kind", "text", "bytes")
_TEXT = ((str,), 0, _LONGEST)
_SECONDS = ((float, int), 0, LATEST)
_AMOUNT = ((int,), 0, WHOLE)
# What the values of a column are, and the least and the most of them, or of their characters.
_VALUES: dict[str, tuple[tuple[type, ...], float, float]] = {
    **dict.fromkeys(("about.name", "about.value", "events.kind", "ledgers.rows"), _TEXT),
    "members.name": _TEXT,
    "events.text": ((str,), 0, LONGEST_TEXT),
    **dict.fromkeys((f"{table}.seconds" for table in _TABLES), _SECONDS),
    "readings.step": ((int, type(None)), -WHOLE, WHOLE),
}


@dataclass(frozen=True, kw_only=True)
class _About:
    """Facts of the run, as the table `about` has them."""

    command: tuple[str, ...] = ()
    pid: int = 0
    started: float = 0.0
    limit_bytes: int | None = None
    limit_source: str = ""
    exit_code: int | None = None
    cores: int | None = None
    holders: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _in_range(self.pid, self.exit_code or 0, self.cores or 0, *self.holders.values())
        if self.limit_bytes is not None:
            _in_range(self.limit_bytes, least=1)


@dataclass(frozen=True, kw_only=True)
class _Row:
    """One row of a ledger, as it is kept."""

    name: str
    kind: Kind
    place: Place
    bytes: int
    reserved: int | None
    where: str

    def __post_init__(self) -> None:
        _in_range(self.bytes, self.reserved or 0)


@dataclass(frozen=True, kw_only=True)
class _Peak:
    """All rows of a ledger."""

    rows: tuple[_Row, ...] = ()


def load(path: Path) -> Trace:
    """Read a recording, finished or still growing."""
    with _opened(path) as file:
        facts = {name: json.loads(value) for name, value in _rows(file, "about", "name", "value")}
        about = from_json(_About, facts, foreign=True)
        readings = [
            Reading(**dict(zip(_READING, row, strict=True)))
            for row in _rows(file, "readings", *_READING)
        ]
        events = [
            Event(seconds=seconds, kind=EventKind(kind), text=text, bytes=amount)
            for seconds, kind, text, amount in _rows(file, "events", *_EVENT)
        ]
        ledgers = list(_ledgers(_rows(file, "ledgers", "rows", "seconds")))
        members = _rows(file, "members", *_MEMBER)
    limit = about.limit_bytes
    return Trace(
        command=about.command,
        pid=about.pid,
        started=about.started,
        limit=None if limit is None else Limit(bytes=limit, source=about.limit_source),
        readings=tuple(sorted(readings, key=lambda reading: reading.seconds)),
        events=tuple(events),
        peak_ledger=ledgers[0].ledger if ledgers else None,
        rows_at=ledgers[0].seconds if ledgers else None,
        rows_over_time=tuple(sorted(ledgers, key=lambda at: at.seconds)),
        exit_code=about.exit_code,
        cores=about.cores,
        holders=about.holders,
        members=_members(members),
    )


def _members(rows: Sequence[tuple[Any, ...]]) -> tuple[Member, ...]:
    """The processes of a run, each with what it held over time."""
    names: dict[int, str] = {}
    found: dict[int, list[Reading]] = {}
    for pid, name, seconds, amount in rows:
        names[pid] = name  # the last: a process that has just been started has none of its own
        found.setdefault(pid, []).append(Reading(seconds=seconds, bytes=amount))
    return tuple(
        Member(
            pid=pid,
            name=names[pid],
            readings=tuple(sorted(readings, key=lambda reading: reading.seconds)),
        )
        for pid, readings in found.items()
    )


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A recording to read, all of it at one moment; clear words for what is none."""
    if not os.path.isfile(path):  # noqa: PTH113  # a name may be too long
        raise UsageError(f"there is no file {path}: give a recording made by `memfit run`")
    for part in (path, path.with_name(f"{path.name}-wal")):
        if part.exists() and part.stat().st_size > MOST_BYTES:
            raise UsageError(
                f"{part} has {format_bytes(part.stat().st_size)}, which no recording has: give a "
                "file made by `memfit run`"
            )
    try:
        with (
            _nothing_left(path.resolve()),  # what is beside a recording is beside no link to it
            closing(sqlite3.connect(_address(path.resolve()), uri=True, timeout=PATIENCE)) as file,
        ):
            _bound(file)
            _check_header(file, path)
            file.execute("BEGIN")
            for table in _TABLES:
                _check_table(file, table)
            yield file
    except (sqlite3.Error, OSError, ValueError, TypeError, RecursionError) as error:
        stopped = str(error) == "interrupted"
        why = f"that takes longer than {_MOST_SECONDS:g} s" if stopped else error
        raise UsageError(
            f"{path} cannot be read as a recording: {why}. Give a file made by `memfit run`"
        ) from None


def _address(path: Path) -> str:
    """A recording as SQLite opens it to read alone.

    One whose write-ahead log is not there has no writer. SQLite would make that log to read it.
    """
    with path.open("rb") as file:
        logged = file.read(20)[18:] == b"\2\2"
    alone = logged and not path.with_name(f"{path.name}-wal").exists()
    return f"{path.as_uri()}?mode=ro{'&immutable=1' if alone else ''}"


@contextmanager
def _nothing_left(path: Path) -> Iterator[None]:
    """Remove what SQLite makes beside a recording to read it.

    A writer has its `-shm` before anything is in its log: where there was none beside a log, the
    writer is gone, and it is the readers' own.
    """
    log, shared = (path.with_name(f"{path.name}{end}") for end in ("-wal", "-shm"))
    ours = log.exists() and log.stat().st_size > 0 and not shared.exists()
    try:
        yield
    finally:
        if ours:
            with suppress(OSError):
                shared.unlink()


def _bound(file: sqlite3.Connection) -> None:
    """Let nothing that a file says take long, or go to the disk."""
    until = time.monotonic() + _MOST_SECONDS
    file.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
    file.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
    file.execute("PRAGMA trusted_schema = OFF")
    file.execute("PRAGMA temp_store = MEMORY")


def _check_header(file: sqlite3.Connection, path: Path) -> None:
    if file.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
        raise UsageError(f"{path} is no recording: give a file made by `memfit run`")
    version = file.execute("PRAGMA user_version").fetchone()[0]
    if version > SCHEMA:
        raise UsageError(
            f"{path} was recorded by a newer memfit (schema {version}, known up to "
            f"{SCHEMA}): update memfit"
        )


def _check_table(file: sqlite3.Connection, table: str) -> None:
    """Refuse what only looks like a table, works its values out, or is damaged."""
    query = "SELECT type, rootpage, sql FROM sqlite_master WHERE name = ?"
    kind, page, sql = file.execute(query, (table,)).fetchone() or ("missing", 0, "")
    if kind == "missing" and table in _LATER_TABLES:
        return
    if kind != "table" or not page or _WORKED_OUT.search(str(sql)):
        raise ValueError(f"{table} is no plain table")
    if (found := file.execute(f"PRAGMA quick_check({table})").fetchone()) != ("ok",):
        raise ValueError(f"it is damaged ({found[0] if found else 'no answer'})")


def _rows(file: sqlite3.Connection, table: str, *columns: str) -> list[tuple[Any, ...]]:
    """Some columns of a table, in order, every value checked."""
    order, most = _TABLES[table]
    there = [row[1] for row in file.execute(f"PRAGMA table_info({table})")]
    if not there and table in _LATER_TABLES:
        return []
    later = [name for name in columns if name in _LATER_COLUMNS and name not in there]
    picked = ", ".join("0" if name in later else name for name in columns)
    query = f"SELECT {picked} FROM {table} ORDER BY {order}"
    found = file.execute(query).fetchmany(most + 1)
    if len(found) > most:
        raise ValueError(f"{table} has more than {most:,} rows")
    for name, values in zip(columns, zip(*found, strict=True), strict=False):
        _check_values(f"{table}.{name}", values)
    return found


def _check_values(name: str, values: Sequence[Any]) -> None:
    kinds, least, most = _VALUES.get(name, _AMOUNT)
    wrong = [v for v in values if type(v) not in kinds]
    if not wrong:
        key = len if str in kinds else None
        known = [v for v in values if v is not None]
        ends = (min(known, key=key), max(known, key=key)) if known else ()
        wrong = [v for v in ends if not least <= (key(v) if key else v) <= most]
    if wrong:
        raise ValueError(f"{name} cannot be {reprlib.repr(wrong[0])}")


def _in_range(*amounts: int, least: int = -WHOLE) -> None:
    """Refuse numbers that no memory has: all that is worked out with them is exact below."""
    for amount in amounts:
        if not least <= amount < WHOLE:
            raise ValueError(f"{reprlib.repr(amount)} is out of range")


def _ledgers(found: Sequence[tuple[str, float]]) -> Iterator[RowsAt]:
    """The highest rows, and as many others as are read in a moment."""
    read = 0
    for number, (text, seconds) in enumerate(found):
        read += len(text)
        if number and (number >= 2 * MOST_LEDGERS or read > _LONGEST):
            return
        peak = from_json(_Peak, {"rows": json.loads(text)}, foreign=True)
        yield RowsAt(seconds=seconds, ledger=_ledger(peak))


def _ledger(peak: _Peak) -> Ledger:
    return Ledger(
        components=tuple(
            Component(
                name=row.name,
                kind=row.kind,
                place=row.place,
                size=size(row.bytes),
                reserved=None if row.reserved is None else size(row.reserved),
                phases=(),
                evidence=Evidence(kind=EvidenceKind.MEASURED, where=row.where),
            )
            for row in peak.rows
        )
    )
