"""`memfit export`: what it writes is read back by the libraries of those who will read it."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memfit.api import export as api
from memfit.cli import main
from memfit.errors import UsageError
from memfit.model import Limit, Member, Reading, Trace
from memfit.render import trace_csv, trace_openmetrics
from tests.measure.record import crafted_recordings
from tests.samples_live import trace

Captured = pytest.CaptureFixture[str]
_RUN = (
    "import multiprocessing, time\n"
    "def work(): kept = b'x' * 2**25; time.sleep(1.5)\n"
    "if __name__ == '__main__':\n"
    "    other = multiprocessing.get_context('fork').Process(target=work)\n"
    "    other.start(); work(); other.join()\n"
)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real run of two processes."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "two.py").write_text(_RUN, encoding="utf-8")
    subprocess.run(
        [
            sys.executable,
            *["-m", "memfit", "run", "-q", "-o", "night.db", "--"],
            sys.executable,
            "two.py",
        ],
        cwd=folder,
        check=True,
        timeout=100,
    )
    return folder / "night.db"


def exported(recording: Path, to: str, capsys: Captured) -> str:
    assert main(["export", str(recording), "--to", to]) == 0
    return capsys.readouterr().out


def test_a_table_has_every_reading(recording: Path, capsys: Captured) -> None:
    recorded = api.recording(recording)
    rows = list(csv.DictReader(io.StringIO(exported(recording, "csv", capsys))))
    totals = [row for row in rows if row["scope"] == "total"]
    assert [int(row["pss_bytes"]) for row in totals] == [r.bytes for r in recorded.readings]
    for member in recorded.members:
        own = [int(row["pss_bytes"]) for row in rows if row["pid"] == str(member.pid)]
        assert own == [r.bytes for r in member.readings]
    times = [float(row["seconds"]) for row in rows]
    assert times == sorted(times)


def test_prometheus_reads_every_reading_with_its_time(recording: Path, capsys: Captured) -> None:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    recorded = api.recording(recording)
    text = exported(recording, "prometheus", capsys)
    found = {f.name: f.samples for f in parser.text_string_to_metric_families(text)}
    totals = found["memfit_total_pss_bytes"]
    assert {s.labels["run"] for s in totals} == {"night"}
    assert max(int(s.value) for s in totals) == max(r.bytes for r in recorded.readings)
    first = recorded.started + recorded.readings[0].seconds
    assert float(totals[0].timestamp) == pytest.approx(first, abs=0.002)
    pids = {s.labels["pid"]: s.labels["role"] for s in found["memfit_pss_bytes"]}
    assert pids[str(recorded.pid)] == "main"


def test_tensorboard_reads_every_reading(recording: Path, tmp_path: Path) -> None:
    reader: Any = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    words = ["export", str(recording), "--to", "tensorboard", "-o", str(tmp_path / "logs")]
    assert main(words) == 0
    events = reader.EventAccumulator(str(tmp_path / "logs"), size_guidance={"scalars": 0})
    events.Reload()
    recorded = api.recording(recording)
    found = events.Scalars("memfit/total_pss_bytes")
    assert [e.value for e in found] == pytest.approx([r.bytes for r in recorded.readings])
    assert [e.wall_time for e in found] == pytest.approx(
        [recorded.started + r.seconds for r in recorded.readings]
    )
    tags = set(events.Tags()["scalars"])
    assert f"memfit/pss_bytes/main_{recorded.pid}" in tags
    assert main(words) == 2  # it is there already
    assert main([*words, "--force"]) == 0
    assert len(list((tmp_path / "logs").iterdir())) == 1  # and nothing half-written beside it


def test_steps_are_the_environments_own_and_never_go_back(tmp_path: Path) -> None:
    reader: Any = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    from memfit.integrations.tensorboard import write_events

    steps = [None, 10, None, 8, 30]
    readings = tuple(Reading(seconds=i, bytes=i + 1, step=step) for i, step in enumerate(steps))
    write_events(replace(trace(), readings=readings), "a", tmp_path)
    events = reader.EventAccumulator(str(tmp_path))
    events.Reload()
    assert [e.step for e in events.Scalars("memfit/total_pss_bytes")] == [0, 10, 10, 10, 30]


def hostile() -> Trace:
    """Names that would be formulas, steer a terminal, or end a label."""
    told = '=cmd|"/C calc"!A0\x1b[2J\n,"'
    readings = (Reading(seconds=0.0001, bytes=1), Reading(seconds=0.0002, bytes=3))
    return replace(
        trace(),
        limit=Limit(bytes=5, source=told),
        members=(Member(pid=1, name=told, readings=readings),),
        readings=readings,
    )


def test_names_do_no_harm() -> None:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    rows = list(csv.DictReader(io.StringIO(trace_csv(hostile()))))
    assert [row["name"][:5] for row in rows if row["pid"]] == ["'=cmd", "'=cmd"]
    assert not any("\x1b" in cell for row in rows for cell in row.values())
    families = list(parser.text_string_to_metric_families(trace_openmetrics(hostile(), 'a"b\\')))
    found = {f.name: f.samples for f in families}
    assert found["memfit_limit_bytes"][0].labels["run"] == 'a"b\\'
    # Both readings are of the same millisecond: the highest stays.
    assert [s.value for s in found["memfit_total_pss_bytes"]] == [3]


def test_what_cannot_be_exported_is_told(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "run.db"
    crafted_recordings.good(file)
    assert main(["export", str(tmp_path / "none.db"), "--to", "csv"]) == 2
    assert main(["export", str(file), "--to", "excel"]) == 2
    assert main(["export", str(file), "--to", "tensorboard"]) == 2
    assert "say which with -o" in capsys.readouterr().err
    assert main(["export", str(file), "--to", "csv", "-o", str(tmp_path)]) == 2
    in_the_way = tmp_path / "file"
    in_the_way.write_text("", encoding="utf-8")
    pytest.importorskip("tensorboard")
    with pytest.raises(UsageError, match="Choose another folder"):
        api.to_tensorboard(file, in_the_way / "logs")


def test_without_tensorboard_it_says_what_to_install(tmp_path: Path) -> None:
    file = tmp_path / "run.db"
    crafted_recordings.good(file)
    code = (
        "import sys; sys.modules['tensorboard'] = None\n"
        "from memfit.cli import main\n"
        f"sys.exit(main(['export', {str(file)!r}, '--to', 'tensorboard', '-o', 'logs']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2 and "pip install 'memfit[tensorboard]'" in done.stderr
    assert not (tmp_path / "logs").exists()
