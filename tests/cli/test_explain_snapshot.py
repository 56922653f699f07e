"""`memfit explain snapshot.pickle`, from the outside."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from memfit.cli import main
from tests.samples_device import out_of_memory, written


def test_a_snapshot_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(written(out_of_memory())))
    assert main(["explain", str(path)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "cuda:0 where it ran out of memory: 160 MiB allocated of 240 MiB reserved" in shown
    assert "50.0 MiB were asked for, and the driver had 0 B" in shown
    assert "expandable_segments:True or max_split_size_mb:64" in shown
    assert main(["explain", str(path), "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["kind"] == "explain"
    (device,) = data["devices"]
    assert device["out_of_memory"] == {"asked_bytes": 50 * 2**20, "free_bytes": 0}
    assert device["fragmentation"] == round(80 / 240, 6)


@pytest.mark.parametrize(
    "data",
    [
        pickle.dumps(Path),  # names a class
        pickle.dumps({"segments": [], "device_traces": []}),
        pickle.dumps(written(out_of_memory()))[:-100],
        b"nothing of this kind",
    ],
    ids=["hostile", "empty", "cut off", "foreign"],
)
def test_what_is_no_snapshot_is_refused_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes
) -> None:
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(data)
    assert main(["explain", str(path)]) == 2
    said = capsys.readouterr()
    assert not said.out
    assert str(path.name) in said.err
    assert "Traceback" not in said.err
