"""Results of different commands side by side, and what is said of their difference."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import memfit
from memfit.api.compare import compare
from memfit.errors import UsageError
from memfit.measure.record.recording import Recording
from memfit.render import compare as rendered

MIB = 2**20


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recorded") / "night.db"
    memfit.run([sys.executable, "-c", "import time; time.sleep(0.6)"], record=path)
    return path


def result(folder: Path, kind: str, **amounts: int) -> Path:
    path = folder / f"{kind}.json"
    rows = [{"name": name, "bytes": amount * MIB} for name, amount in amounts.items()]
    total = sum(amounts.values()) * MIB
    path.write_text(json.dumps({"kind": kind, "peak_bytes": total, "components": rows}))
    return path


def test_a_plan_beside_a_recording_says_what_is_compared(tmp_path: Path, recording: Path) -> None:
    plan = result(tmp_path, "plan", base=50)
    for before, after in ((plan, recording), (recording, plan)):
        (note,) = compare(before, after).notes
        assert f"{plan} is of a run alone on the machine" in note
        assert f"where {recording} was read beside other processes" in note
    found = compare(plan, recording)
    assert rendered.compare_json(found)["notes"] == list(found.notes)
    assert f"note: {found.notes[0]}" in [
        block.text for block in rendered.compare_blocks(found) if hasattr(block, "text")
    ]


def test_two_of_a_kind_need_no_note(tmp_path: Path, recording: Path) -> None:
    plan = result(tmp_path, "plan", base=50, buffer=20)
    explained = result(tmp_path, "explain", base=50, buffer=30)
    assert compare(plan, plan).notes == ()
    assert compare(recording, explained).notes == ()
    assert compare(plan, explained).bytes == 10 * MIB
    assert [(r.name, r.bytes) for r in compare(plan, explained).rows] == [("buffer", 10 * MIB)]


@pytest.mark.parametrize(
    "text",
    [
        *("", "null", "7", "[]", "{}", "\xff", "[" * 100_000, '{"components": 1}'),
        *('{"components": [1]}', '{"components": [{"name": "a"}]}'),
        *(f'{{"components": [{{"name": "a", "bytes": {n}}}]}}' for n in ("NaN", "1e999", "null")),
        f'{{"components": [{{"name": "a", "bytes": 1{"0" * 400}}}]}}',
        f'{{"components": [], "peak_bytes": 1{"0" * 400}}}',
        '{"components": [], "pss_bytes": "many"}',
        '{"components": [], "kind": ["plan"]}',
        *(f'{{"components": [], "kind": "{kind}"}}' for kind in (r"plan\u001b[2K", "compare")),
        *(
            f'{{"schema": {n}, "components": [{{"name": "a", "bytes": 5}}]}}'
            for n in ("true", "NaN", "0", "1.0", "null", '"1"', "Infinity")
        ),
        '{"components": [{"name": "a", "bytes": 5}], "peak_bytes": -1}',
        '{"components": [{"name": "a", "bytes": 5}], "pss_bytes": true}',
    ],
    ids=range(28),
)
def test_what_is_no_result_is_refused(text: str, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text('{"kind": "plan", "components": [{"name": "a", "bytes": 5}]}')
    bad.write_text(text, encoding="latin-1")
    assert compare(good, good).bytes == 0
    for pair in ((good, bad), (bad, good)):
        with pytest.raises(UsageError, match="neither a recording nor a result"):
            compare(*pair)


def test_a_result_of_a_newer_memfit_is_refused_as_a_newer_recording_is(tmp_path: Path) -> None:
    plan = result(tmp_path, "plan", base=50)
    newer = tmp_path / "newer.json"
    newer.write_text('{"schema": 2, "kind": "plan", "parts": "anything"}')
    with pytest.raises(UsageError, match=r"by a newer memfit \(schema 2, known up to 1\): update"):
        compare(plan, newer)


def test_what_has_no_reading_is_compared_with_nothing(tmp_path: Path) -> None:
    plan, empty = result(tmp_path, "plan", base=50), tmp_path / "empty.db"
    Recording(empty).close()
    told = result(tmp_path, "recording")
    for pair in ((plan, empty), (empty, plan), (plan, told)):
        with pytest.raises(UsageError, match=r"has no reading: .* Record the run again"):
            compare(*pair)
