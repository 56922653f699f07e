"""One file for a recorded run: SQLite with a write-ahead log, readable while it grows.

Every reading is committed when it is taken, so that nothing of it is lost when the run, the
recorder or both are killed. Old readings are thinned, the lower of two neighbours first, so that
the file stays small however long the run is and keeps its peaks.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from memfit.errors import UsageError
from memfit.model import (
    Component,
    Event,
    EventKind,
    Evidence,
    EvidenceKind,
    Kind,
    Ledger,
    Limit,
    Place,
    Reading,
    Trace,
    size,
)

SCHEMA = 1
APPLICATION = 0x6D656D66  # "memf"
MOST_READINGS = 200_000  # about 50 bytes each
MOST_EVENTS = 20_000
_PATIENCE = 5.0  # seconds to wait for another writer

_TABLES = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS readings (
    id INTEGER PRIMARY KEY, seconds REAL NOT NULL, bytes INTEGER NOT NULL,
    processes INTEGER NOT NULL, threads INTEGER NOT NULL, step INTEGER,
    filling INTEGER NOT NULL, room INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY, seconds REAL NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL,
    bytes INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS ledgers (
    id INTEGER PRIMARY KEY, seconds REAL NOT NULL, bytes INTEGER NOT NULL, rows TEXT NOT NULL);
"""


class Recording:
    """A recording that is being written."""

    def __init__(self, path: Path, *, most_readings: int = MOST_READINGS) -> None:
        self.path = path
        self.most_readings = most_readings
        try:
            self._file = sqlite3.connect(path, isolation_level=None, timeout=_PATIENCE)
            self._file.execute(f"PRAGMA application_id = {APPLICATION}")
            self._file.execute(f"PRAGMA user_version = {SCHEMA}")
            self._file.executescript(_TABLES)
            # Only now, so that the file itself says what it is from the first moment on.
            self._file.execute("PRAGMA journal_mode = WAL")
            self._file.execute("PRAGMA synchronous = NORMAL")
        except sqlite3.Error as error:
            raise UsageError(f"cannot record into {path}: {error}. Choose another file") from None
        self._readings = int(self._file.execute("SELECT count(*) FROM readings").fetchone()[0])

    def about(self, **facts: Any) -> None:
        """Note facts of the run: its command, PID, start and limit."""
        self._file.executemany(
            "INSERT OR REPLACE INTO about VALUES (?, ?)",
            [(name, json.dumps(value)) for name, value in facts.items()],
        )

    def reading(self, reading: Reading) -> None:
        """Keep one reading."""
        self._insert("readings", vars(reading))
        self._readings += 1
        if self._readings > self.most_readings:
            self._thin()

    def event(self, event: Event) -> None:
        """Keep something that happened."""
        self._insert("events", {**vars(event), "kind": event.kind.value})

    def _insert(self, table: str, row: Mapping[str, Any]) -> None:
        names, values = ", ".join(row), ", ".join(f":{name}" for name in row)
        self._file.execute(f"INSERT INTO {table} ({names}) VALUES ({values})", row)

    def ledger(self, seconds: float, ledger: Ledger) -> None:
        """Keep the rows at a peak; the highest one stays, and the latest."""
        rows = [_row(ledger, component) for component in ledger.components]
        total = sum(row["bytes"] for row in rows)
        self._file.execute("BEGIN")
        self._insert("ledgers", {"seconds": seconds, "bytes": total, "rows": json.dumps(rows)})
        self._file.execute(
            "DELETE FROM ledgers WHERE id NOT IN (SELECT max(id) FROM ledgers) AND id NOT IN "
            "(SELECT id FROM ledgers ORDER BY bytes DESC, id LIMIT 1)"
        )
        self._file.execute("COMMIT")

    def started(self) -> float:
        """When the run began, in seconds of the clock; now where nobody said it yet."""
        return float(self._fact("started") or time.time())

    def step(self) -> int | None:
        """The environment step that the run itself last told."""
        found = self._fact("step")
        return None if found is None else int(found)

    def told(self, holders: Mapping[str, int]) -> None:
        """Note what the run itself says that it holds, by path."""
        self.about(holders={**(self._fact("holders") or {}), **holders})

    def _fact(self, name: str) -> Any:
        row = self._file.execute("SELECT value FROM about WHERE name = ?", (name,)).fetchone()
        return None if row is None else json.loads(row[0])

    def leave(self) -> None:
        """Write no more, while another goes on."""
        self._file.close()

    def close(self) -> None:
        """End it: all is in the one file then, and readers make none beside it."""
        with suppress(sqlite3.Error):  # somebody reads it just now
            self._file.execute("PRAGMA journal_mode = DELETE")
        self._file.close()

    def _thin(self) -> None:
        """Of the older three quarters, drop the lower of every two neighbours."""
        self._file.execute("BEGIN")
        self._file.execute(
            "DELETE FROM readings WHERE id IN (SELECT id FROM (SELECT id, row_number() OVER "
            "(PARTITION BY (n - 1) / 2 ORDER BY bytes) AS rank, count(*) OVER "
            "(PARTITION BY (n - 1) / 2) AS pair FROM (SELECT id, bytes, row_number() OVER "
            "(ORDER BY id) AS n FROM readings ORDER BY id LIMIT ?)) WHERE rank = 1 AND pair = 2)",
            (self.most_readings * 3 // 4,),
        )
        self._readings = int(self._file.execute("SELECT count(*) FROM readings").fetchone()[0])
        self._file.execute(
            "DELETE FROM events WHERE id NOT IN (SELECT id FROM events ORDER BY id DESC LIMIT ?) "
            "AND kind = ?",
            (MOST_EVENTS, EventKind.PHASE.value),
        )
        self._file.execute("COMMIT")


def load(path: Path) -> Trace:
    """Read a recording, finished or still growing."""
    with _opened(path) as file:
        about = {name: json.loads(value) for name, value in file.execute("SELECT * FROM about")}
        readings = tuple(Reading(**row) for row in _rows(file, "readings"))
        events = tuple(
            Event(**{**row, "kind": EventKind(row["kind"])}) for row in _rows(file, "events")
        )
        rows = file.execute("SELECT rows FROM ledgers ORDER BY bytes DESC, id LIMIT 1").fetchone()
    limit = about.get("limit_bytes")
    return Trace(
        command=tuple(about.get("command", ())),
        pid=int(about.get("pid", 0)),
        started=float(about.get("started", 0.0)),
        limit=None if limit is None else Limit(bytes=limit, source=about.get("limit_source", "")),
        readings=readings,
        events=events,
        peak_ledger=None if rows is None else _ledger(json.loads(rows[0])),
        exit_code=about.get("exit_code"),
        holders=about.get("holders", {}),
    )


def _rows(file: sqlite3.Connection, table: str) -> Iterator[dict[str, Any]]:
    found = file.execute(f"SELECT * FROM {table} ORDER BY id")
    _, *names = (column[0] for column in found.description)
    return (dict(zip(names, row, strict=True)) for _, *row in found)


def is_recording(path: Path) -> bool:
    """Whether a file begins as a recording does, without opening it as a database."""
    try:
        with path.open("rb") as file:
            head = file.read(72)
    except OSError:
        return False
    return head.startswith(b"SQLite format 3\0") and head[68:72] == APPLICATION.to_bytes(4, "big")


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A recording to read; clear words for what is none."""
    if not path.is_file():
        raise UsageError(f"there is no file {path}: give a recording made by `memfit run`")
    try:
        with closing(
            sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=_PATIENCE)
        ) as file:
            application = file.execute("PRAGMA application_id").fetchone()[0]
            version = file.execute("PRAGMA user_version").fetchone()[0]
            if application != APPLICATION:
                raise UsageError(f"{path} is no recording: give a file made by `memfit run`")
            if version > SCHEMA:
                raise UsageError(
                    f"{path} was recorded by a newer memfit (schema {version}, known up to "
                    f"{SCHEMA}): update memfit"
                )
            if file.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                raise UsageError(f"{path} is damaged: record again, or use a copy of it")
            yield file
    except sqlite3.Error as error:
        raise UsageError(
            f"{path} cannot be read as a recording: {error}. Give a file made by `memfit run`"
        ) from None


def _row(ledger: Ledger, component: Component) -> dict[str, Any]:
    reserved = component.reserved
    return {
        "name": component.name,
        "kind": component.kind.value,
        "place": component.place.value,
        "bytes": ledger.bytes_of(component),
        "reserved": None if reserved is None else reserved.evaluate(ledger.knobs),
        "where": component.evidence.where,
    }


def _ledger(rows: Sequence[Mapping[str, Any]]) -> Ledger:
    return Ledger(
        components=tuple(
            Component(
                name=row["name"],
                kind=Kind(row["kind"]),
                place=Place(row["place"]),
                size=size(row["bytes"]),
                reserved=None if row["reserved"] is None else size(row["reserved"]),
                phases=(),
                evidence=Evidence(kind=EvidenceKind.MEASURED, where=row["where"]),
            )
            for row in rows
        )
    )


@contextmanager
def scratch(place: Path | str | None) -> Iterator[Path]:
    """Where to record: a new file at `place`, or one that is gone afterwards."""
    if place is None:
        with tempfile.TemporaryDirectory(prefix="memfit-") as folder:
            yield Path(folder) / "run.db"
        return
    path = Path(place)
    if path.exists():
        raise UsageError(f"{path} is there already: give another file for the recording")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"cannot record into {path}: its folder does not exist. Create it")
    yield path
