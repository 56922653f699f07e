"""Recordings that no memfit wrote: crafted by hand, and made from good ones by chance."""

from __future__ import annotations

import json
import random
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path

from memfit.measure.record.recording import Recording
from memfit.model import (
    Component,
    Event,
    EventKind,
    Evidence,
    EvidenceKind,
    Kind,
    Ledger,
    Reading,
    size,
)

# Values that a column may have in a file of others.
ODD = (
    *(None, -1, 0, 1, 2**31, 2**63 - 1, -(2**63), 1e308, -1e308, 5e-324, float("inf")),
    *("", "x", "1", "nan", "\x1b[31m", "\ud7ff", b"", b"\xff\xfe", "[" * 5000, "9" * 5000),
)
ODD_JSON = (
    *("", "null", "true", "-1", "0", "1.5", "1e999", "NaN", "Infinity", '"x"', "[]", "{}", "[[]]"),
    *('{"x": 1}', "[1]", '["x"]', "[" * 100_000, "9" * 5000, '"\\ud800"', '["\\ud800\\u001b[2J"]'),
    *("1" + "0" * 400, '{"a": 1' + "0" * 400 + "}", '{"a": -5}', '{"a": null}'),
)
FACTS = ("command", "pid", "started", "limit_bytes", "limit_source", "exit_code", "holders")
COLUMNS = {
    "readings": ("seconds", "bytes", "processes", "threads", "step", "filling", "room"),
    "events": ("seconds", "kind", "text", "bytes"),
    "ledgers": ("seconds", "bytes", "rows"),
}
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT "


def good(path: Path, *, readings: int = 60) -> None:
    """A whole recording, as memfit writes it."""
    path.write_bytes(_written(readings))


@cache
def _written(readings: int) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "good.db"
        _write(path, readings)
        return path.read_bytes()


def _write(path: Path, readings: int) -> None:
    recording = Recording(path)
    about = {"limit_bytes": 2**34, "limit_source": "--limit", "holders": {"model.buffer": 2**20}}
    recording.about(command=["python", "train.py"], pid=7, started=1.5, exit_code=0, **about)
    for i in range(readings):
        recording.reading(Reading(seconds=i / 2, bytes=(100 + i) * 2**20, step=100 * i, room=3))
    recording.event(Event(seconds=1.0, kind=EventKind.WARNING, text="near the limit", bytes=9))
    row = Component(
        name="malloc.heap",
        kind=Kind.HEAP,
        size=size(2**20),
        reserved=size(2**21),
        phases=(),
        evidence=Evidence(kind=EvidenceKind.MEASURED, where="smaps"),
    )
    recording.ledger(1.0, Ledger(components=(row,)))
    recording.close()


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A file to change, without a wait for the disk."""
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("PRAGMA synchronous = OFF")
        yield file


def changed(path: Path, *statements: str | tuple[str, tuple[object, ...]]) -> None:
    """A good recording after some SQL."""
    good(path)
    with opened(path) as file:
        for statement in statements:
            file.execute(*((statement,) if isinstance(statement, str) else statement))


def view(table: str, columns: str) -> Callable[[Path], None]:
    """A view with rows without end in the place of a table."""

    def craft(path: Path) -> None:
        select = f"CREATE VIEW {table} AS {ENDLESS}{columns} FROM n"
        changed(path, f"DROP TABLE {table}", select)

    return craft


def replaced(table: str, definition: str, *more: str) -> Callable[[Path], None]:
    """A table that is made in another way."""

    def craft(path: Path) -> None:
        changed(path, f"DROP TABLE {table}", f"CREATE {definition}", *more)

    return craft


def fact(name: str, value: str) -> Callable[[Path], None]:
    """A fact of the run that is another."""

    def craft(path: Path) -> None:
        changed(path, ("INSERT OR REPLACE INTO about VALUES (?, ?)", (name, value)))

    return craft


def many_readings(count: int) -> str:
    """SQL that adds readings up to so many."""
    columns = "seconds, bytes, processes, threads, filling, room"
    rows = f"{ENDLESS}i, i, 1, 1, 0, 0 FROM n LIMIT {count} - (SELECT count(*) FROM readings)"
    return f"INSERT INTO readings ({columns}) {rows}"


def _grown(path: Path) -> None:
    good(path)
    with path.open("r+b") as file:
        file.truncate(2**29)


_ALL = "i AS id, 1.0 AS seconds, 1 AS bytes, 1 AS processes, 1 AS threads, 1 AS step"
_SLOW = "length(replace(hex(zeroblob(3000000)), '0', 'ab'))"
_INTO = "INSERT INTO readings (id, seconds, processes, threads, filling, room)"
_MANY = f"{_INTO} {ENDLESS}i, i, 1, 1, 0, 0 FROM n LIMIT 100000"

# Each is a name and what makes the file; none may be taken for a recording.
REFUSED: dict[str, Callable[[Path], None]] = {
    "endless readings": view("readings", f"{_ALL}, 0 AS filling, 0 AS room"),
    "endless events": view(
        "events", "i AS id, 1.0 AS seconds, 'start' AS kind, 'x' AS text, 1 AS bytes"
    ),
    "endless facts": view("about", "'f' || i AS name, '1' AS value"),
    "endless ledgers": view("ledgers", "i AS id, 1.0 AS seconds, i AS bytes, '[]' AS rows"),
    "values that are worked out": replaced(
        "readings",
        "TABLE readings (id INTEGER PRIMARY KEY, seconds REAL, processes INT, threads INT, "
        f"step INT, filling INT, room INT, bytes INT AS ({_SLOW}))",
        _MANY,
    ),
    "a check that takes long": replaced(
        "readings",
        "TABLE readings (id INTEGER PRIMARY KEY, seconds REAL, processes INT, threads INT, "
        f"step INT, filling INT, room INT, bytes INT DEFAULT 1, CHECK ({_SLOW} > bytes))",
        "PRAGMA ignore_check_constraints = ON",
        _MANY,
    ),
    "a virtual table": replaced("readings", "VIRTUAL TABLE readings USING fts5(seconds, bytes)"),
    "no readings": lambda path: changed(path, "DROP TABLE readings"),
    "a column that is missing": lambda path: changed(path, "ALTER TABLE readings DROP COLUMN room"),
    "a limit of nothing": fact("limit_bytes", "0"),
    "a limit below zero": fact("limit_bytes", "-5"),
    "a limit beyond all": fact("limit_bytes", "1" + "0" * 400),
    "a holder beyond all": fact("holders", '{"a": 1' + "0" * 400 + "}"),
    "facts nested without end": fact("command", "[" * 100_000),
    "a command that is a number": fact("command", "7"),
    "a start that is none": fact("started", "NaN"),
    "seconds without end": lambda path: changed(path, "UPDATE readings SET seconds = 9e999"),
    "seconds before the start": lambda path: changed(path, "UPDATE readings SET seconds = -1"),
    "bytes as a text": lambda path: changed(path, "UPDATE readings SET bytes = 'many'"),
    "an event of no kind": lambda path: changed(path, "UPDATE events SET kind = 'party'"),
    "an event without end": lambda path: changed(
        path, ("UPDATE events SET text = ?", ("x" * 2**20,))
    ),
    "rows that are no list": lambda path: changed(path, "UPDATE ledgers SET rows = '{}'"),
    "rows without names": lambda path: changed(path, "UPDATE ledgers SET rows = '[{}]'"),
    "a hole that is too large": _grown,
}
# Named columns are read, so that what somebody added is no error; and times may come in disorder.
TAKEN: dict[str, Callable[[Path], None]] = {
    "an added column": lambda path: changed(
        path,
        "ALTER TABLE readings ADD COLUMN colour TEXT DEFAULT 'red'",
        "ALTER TABLE events ADD COLUMN colour TEXT DEFAULT 'red'",
    ),
    "an added table": lambda path: changed(path, "CREATE TABLE more (a)"),
    "an added view": lambda path: changed(path, f"CREATE VIEW more AS {ENDLESS}i FROM n"),
    "an added fact": fact("colour", '"red"'),
    "times in disorder": lambda path: changed(path, "UPDATE readings SET seconds = 100 - seconds"),
    "one moment": lambda path: changed(path, "UPDATE readings SET seconds = 5e-324"),
    "steps at one moment": lambda path: changed(
        path,
        "UPDATE readings SET step = NULL WHERE id < 59",
        "UPDATE readings SET seconds = 29.5 + 1e-15, step = 9e18 WHERE id = 60",
    ),
}


def fuzzed(path: Path, seed: int) -> None:
    """A good recording with a few values of others, or with other bytes."""
    draw = random.Random(seed)
    good(path, readings=draw.choice((0, 1, 2, 60)))
    if draw.random() < 0.4:
        _other_bytes(path, draw)
        return
    with opened(path) as file:
        for _ in range(draw.randrange(1, 4)):
            _other_value(file, draw)


def _other_bytes(path: Path, draw: random.Random) -> None:
    data = bytearray(path.read_bytes())
    if draw.random() < 0.2:
        del data[draw.randrange(len(data)) :]
    for _ in range(draw.choice((1, 3, 30, 300))):
        at = draw.randrange(max(1, len(data)))
        data[at : at + 1] = bytes([draw.randrange(256)])
    path.write_bytes(data)


def _other_value(file: sqlite3.Connection, draw: random.Random) -> None:
    table = draw.choice(("about", *COLUMNS))
    if table == "about":
        name, value = draw.choice(FACTS), draw.choice(ODD_JSON)
        file.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (name, value))
        return
    column = draw.choice(COLUMNS[table])
    odd: object = draw.choice(ODD)
    if column == "rows":
        row = {
            "name": "a",
            "kind": "heap",
            "place": "workers",
            "reserved": None,
            "where": "",
            "bytes": 1,
        }
        row[draw.choice(list(row))] = json.loads(
            draw.choice(('"x"', "null", "[]", "-1", "1e999", "7"))
        )
        odd = draw.choice((json.dumps([row]), draw.choice(ODD_JSON)))
    # A table of another make takes any value.
    columns = ", ".join(COLUMNS[table])
    file.execute(f"ALTER TABLE {table} RENAME TO old")
    file.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, {columns})")
    file.execute(f"INSERT INTO {table} (id, {columns}) SELECT id, {columns} FROM old")
    file.execute("DROP TABLE old")
    some = draw.choice(("1 = 1", "id % 2 = 0", "id = 1"))
    file.execute(f"UPDATE {table} SET {column} = ? WHERE {some}", (odd,))
