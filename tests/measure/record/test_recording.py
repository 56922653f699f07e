"""Recordings: written as they come, thinned with their peaks, refused where they are none."""

from __future__ import annotations

import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memfit.errors import UsageError
from memfit.measure.record.recording import (
    APPLICATION,
    MOST_EVENTS,
    MOST_LEDGERS,
    Recording,
    is_recording,
    scratch,
)
from memfit.measure.record.recording_reader import load
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


def ledger(amount: int) -> Ledger:
    row = Component(
        name="malloc.heap",
        kind=Kind.HEAP,
        size=size(amount),
        reserved=size(2 * amount),
        phases=(),
        evidence=Evidence(kind=EvidenceKind.MEASURED, where="smaps"),
    )
    return Ledger(components=(row,))


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    recording = Recording(path)
    recording.about(command=["python", "train.py"], pid=7, started=1.5, limit_bytes=100)
    readings = [Reading(seconds=i, bytes=10 * i, step=i, room=3) for i in range(5)]
    for reading in readings:
        recording.reading(reading)
    event = Event(seconds=1, kind=EventKind.WARNING, text="near the limit", bytes=9)
    recording.event(event)
    for amount in (5, 50, 20):
        recording.ledger(1.0, ledger(amount))
    assert is_recording(path)
    link = tmp_path / "link"
    link.symlink_to(path)
    growing = load(path), load(link)  # while it is still written
    link.unlink()
    recording.close()
    for trace in (*growing, load(path)):
        assert trace.command == ("python", "train.py")
        assert trace.readings == tuple(readings)
        assert trace.events == (event,)
        assert trace.limit is not None and trace.limit.bytes == 100
        assert trace.peak_ledger is not None
        assert trace.peak_ledger.bytes_of(trace.peak_ledger.components[0]) == 50
        assert trace.peak is not None and trace.peak.bytes == 40
    assert sorted(f.name for f in tmp_path.iterdir()) == ["run.db"]


@pytest.mark.parametrize("peak_at", [0, 100, 299])
def test_rows_over_time_are_thinned_and_keep_the_highest_and_the_latest(
    peak_at: int, tmp_path: Path
) -> None:
    recording = Recording(tmp_path / "run.db")
    for at in range(300):
        recording.ledger(float(at), ledger(10**6 if at == peak_at else at))
    recording.close()
    trace = load(tmp_path / "run.db")
    times = [rows.seconds for rows in trace.rows_over_time]
    assert times == sorted(times)
    assert peak_at in times and times[-1] == 299 and times[0] <= 100
    assert MOST_LEDGERS // 2 <= len(times) <= MOST_LEDGERS + 1
    assert trace.rows_at == peak_at
    assert trace.peak_ledger is not None
    assert sum(trace.peak_ledger.row_bytes.values()) == 10**6


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=300), st.integers(8, 40))
def test_thinning_keeps_the_peak_the_last_and_the_order(
    tmp_path_factory: pytest.TempPathFactory, amounts: list[int], most: int
) -> None:
    path = tmp_path_factory.mktemp("thin") / "run.db"
    recording = Recording(path, most_readings=most)
    for i, amount in enumerate(amounts):
        recording.reading(Reading(seconds=float(i), bytes=amount))
    recording.close()
    kept = load(path).readings
    assert len(kept) <= most
    assert max(r.bytes for r in kept) == max(amounts)
    assert kept[-1].bytes == amounts[-1]
    assert [r.seconds for r in kept] == sorted(r.seconds for r in kept)


def test_a_long_run_stays_below_50_mb(tmp_path: Path) -> None:
    path = tmp_path / "long.db"
    recording = Recording(path)
    recording._file.execute("BEGIN")
    draw = random.Random(0)
    for i in range(recording.most_readings):
        recording.reading(
            Reading(seconds=i / 4 + 1e-3, bytes=draw.randrange(2**36), step=i, room=2**40 + i)
        )
    recording._file.execute("COMMIT")
    before = path.stat().st_size
    for i in range(200):
        recording.reading(Reading(seconds=1e6 + i, bytes=draw.randrange(2**36), step=i))
    recording.close()
    assert before <= 25_000_000
    assert sum(f.stat().st_size for f in tmp_path.iterdir()) <= 50_000_000


WRITER = """
import sys
from pathlib import Path
from memfit.measure.record.recording import MOST_LEDGERS, Recording
from memfit.model import Reading
recording = Recording(Path(sys.argv[1]), most_readings=500)
recording.about(command=["x"], pid=1, started=0.0)
i = 0
while True:
    recording.reading(Reading(seconds=float(i), bytes=i))
    sys.stdout.write(f"{i}\\n")
    sys.stdout.flush()
    i += 1
"""


@pytest.mark.parametrize("moment", range(5))
def test_a_killed_writer_loses_nothing_that_was_written(moment: int, tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    writer.stdout.readline()
    time.sleep(random.Random(moment).uniform(0, 0.3))
    writer.send_signal(signal.SIGKILL)
    said = writer.stdout.read().split()
    writer.wait()
    writer.stdout.close()
    readings = load(path).readings
    assert readings[-1].bytes >= int(said[-1] if said else 0)


@pytest.mark.parametrize("ends", [("",), ("", "-wal"), ("", "-wal", "-shm")])
def test_reading_what_a_killed_writer_left_makes_no_files(
    ends: tuple[str, ...], tmp_path: Path
) -> None:
    recording = Recording(tmp_path / "run.db")
    recording.reading(Reading(seconds=1.0, bytes=5))
    copy = tmp_path / "copy" / "run.db"
    copy.parent.mkdir()
    for end in ends:  # as they are without the writer's last words
        shutil.copy(tmp_path / f"run.db{end}", f"{copy}{end}")
    recording.close()
    assert len(load(copy).readings) == ("-wal" in ends)
    assert sorted(copy.parent.iterdir()) == sorted(Path(f"{copy}{end}") for end in ends)


def test_what_is_no_recording_is_refused_with_a_reason(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no file"):
        load(tmp_path / "none.db")
    text = tmp_path / "text.db"
    text.write_text("hello " * 1000)
    with pytest.raises(UsageError, match="recording"):
        load(text)
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as file:
        file.execute("CREATE TABLE t (a)")
    file.close()
    with pytest.raises(UsageError, match="no recording"):
        load(other)
    assert not is_recording(other) and not is_recording(text)
    newer = tmp_path / "newer.db"
    Recording(newer).close()
    with sqlite3.connect(newer) as file:
        file.execute("PRAGMA user_version = 99")
    file.close()
    with pytest.raises(UsageError, match="newer"):
        load(newer)
    assert APPLICATION.to_bytes(4, "big") == b"memf"


@pytest.mark.parametrize("name", ["file:mine.db", "file:mine.db?mode=rwc", ":memory:"])
def test_a_name_is_a_files_name_whatever_sqlite_makes_of_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mine = Path("mine.db")
    with closing(sqlite3.connect(mine)) as file:
        file.execute("CREATE TABLE t (a)")
    before = mine.read_bytes()
    with scratch(name) as path:
        recording = Recording(path)
        recording.reading(Reading(seconds=0.0, bytes=5))
        recording.close()
    assert mine.read_bytes() == before
    assert sorted(f.name for f in tmp_path.iterdir()) == sorted(["mine.db", name])
    assert load(Path(name)).readings[0].bytes == 5
    with pytest.raises(UsageError, match="is there already"), scratch(name):
        pass


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
def test_a_place_is_taken_where_a_file_beside_it_would_be_overwritten(
    end: str, tmp_path: Path
) -> None:
    (tmp_path / f"run.db{end}").write_text("mine")
    with pytest.raises(UsageError, match=f"{end} is there already"), scratch(tmp_path / "run.db"):
        pass


def test_a_recording_that_cannot_be_begun_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.db"
    with monkeypatch.context() as patch:
        patch.setattr("memfit.measure.record.recording._TABLES", "CREATE TABLE x (a); nonsense;")
        with pytest.raises(UsageError, match="cannot record"):
            Recording(path)
        assert list(tmp_path.iterdir()) == []
        path.write_bytes(b"")  # somebody else's stays
        with pytest.raises(UsageError, match="cannot record"):
            Recording(path)
        assert path.exists()


def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    recording = Recording(path)
    for i in range(5000):
        recording.reading(Reading(seconds=float(i), bytes=i))
    recording.close()
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UsageError, match=r"run\.db"):
        load(path)


def test_phases_that_are_told_without_end_leave_a_recording_that_is_read(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    recording = Recording(path)
    recording.event(Event(seconds=0, kind=EventKind.START, text="first"))
    recording._file.execute("BEGIN")  # one commit for all, so that this is quick
    for number in range(2 * MOST_EVENTS):
        recording.event(Event(seconds=number, kind=EventKind.PHASE, text=f"phase {number}"))
    recording._file.execute("COMMIT")
    recording.close()
    events = load(path).events
    assert MOST_EVENTS <= len(events) <= 1.1 * MOST_EVENTS
    assert events[0].text == "first" and events[-1].text == f"phase {2 * MOST_EVENTS - 1}"


def test_an_old_recording_is_replaced_where_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    recording = Recording(path)
    recording.reading(Reading(seconds=1.0, bytes=5))
    with pytest.raises(UsageError, match="no recording that has ended"), scratch(path, force=True):
        pass  # it is still written
    recording.close()
    with pytest.raises(UsageError, match="give -f to replace it, or a new name"), scratch(path):
        pass
    with scratch(path, force=True) as again:
        assert not again.exists()
    mine = tmp_path / "notes.txt"
    mine.write_text("mine")
    with pytest.raises(UsageError, match="no recording"), scratch(mine, force=True):
        pass
    assert mine.read_text() == "mine"


def test_a_recording_of_an_older_memfit_is_read(tmp_path: Path) -> None:
    """Without the table of processes, and without the column of files."""
    path = tmp_path / "run.db"
    recording = Recording(path)
    recording.reading(Reading(seconds=1.0, bytes=5, files=3))
    recording.members(1.0, [(7, "python", 5)])
    recording.close()
    assert load(path).members[0].readings == (Reading(seconds=1.0, bytes=5),)
    with closing(sqlite3.connect(path)) as file:
        file.execute("DROP TABLE members")
        file.execute("ALTER TABLE readings DROP COLUMN files")
        file.commit()
    old = load(path)
    assert old.readings == (Reading(seconds=1.0, bytes=5),) and not old.members
