"""Snapshots as files: read as torch writes them, and refused whatever else they are."""

from __future__ import annotations

import os
import pickle
import pickletools
import resource
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfit.device.snapshot_file import is_snapshot, read_snapshot
from memfit.errors import UsageError
from memfit.units import GIB, MIB
from tests.samples_device import out_of_memory, written


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "snapshot.pickle"


def refused(path: Path, data: bytes, *, room: int = GIB) -> str:
    path.write_bytes(data)
    with pytest.raises(UsageError) as caught:
        read_snapshot(path, room)
    return str(caught.value)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_what_torch_writes_is_read(path: Path, protocol: int) -> None:
    program = out_of_memory()
    path.write_bytes(pickle.dumps(written(program), protocol))
    assert is_snapshot(path)
    (card,) = read_snapshot(path, GIB)
    expected = program.snapshot()
    assert [s.address for s in card.segments] == [s.address for s in expected.segments]
    assert [(e.action, e.size) for e in card.events] == [
        (e.action, e.size) for e in expected.events
    ]
    stacks = {e.stack[0].function for e in card.events if e.stack}
    assert stacks == {"forward", "_init_group", "load"}


class Runs:
    """What a hostile pickle would do as it is read."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.mark),)


def test_no_class_is_loaded_and_nothing_runs(path: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    hostile = {**written(out_of_memory()), "more": Runs(mark)}
    assert "could run anything" in refused(path, pickle.dumps(hostile))
    assert not mark.exists()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80",
        b"not a pickle at all",
        pickle.dumps([1, 2]),
        pickle.dumps({"segments": 3, "device_traces": []}),
        pickle.dumps({"segments": [1], "device_traces": []}),
        pickle.dumps({"segments": [{"address": -5}], "device_traces": []}),
        pickle.dumps({"segments": [{"address": 5, "total_size": True}], "device_traces": []}),
        pickle.dumps({"segments": [], "device_traces": [[{"action": 3}]]}),
        pickle.dumps({"segments": [], "device_traces": [[{"action": "alloc", "size": 2**70}]]}),
        pickle.dumps({"segments": [], "device_traces": [{"a": 1}]}),
        b"\x80\x02Pother\n.",
        b"\x80\x02\x8aA" + b"\xff" * 10,
    ],
    ids=range(13),
)
def test_corrupt_and_foreign_files_are_refused(path: Path, data: bytes) -> None:
    assert "_dump_snapshot" in refused(path, data)


def test_overlapping_segments_and_blocks_are_refused(path: Path) -> None:
    data = written(out_of_memory())
    again = {**data, "segments": [data["segments"][0], data["segments"][0]]}
    assert "overlap" in refused(path, pickle.dumps(again))
    blocks = [{"address": n, "size": 1024, "state": "inactive"} for n in (0, 512)]
    segment = {"address": 0, "total_size": 4096, "stream": 0, "blocks": blocks}
    inside = {"segments": [segment], "device_traces": []}
    assert "overlap" in refused(path, pickle.dumps(inside))


@pytest.mark.parametrize("length", [10, 1000, 1800])
def test_files_that_were_cut_off_are_refused(path: Path, length: int) -> None:
    whole = pickle.dumps(written(out_of_memory()))
    assert "cut off" in refused(path, whole[:length])


def test_a_few_bytes_that_ask_for_much_memory_do_not_get_it(path: Path) -> None:
    """The memo of a pickle may be asked to have two thousand million places."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    data = b"\x80\x02Nr" + (2**31 - 2).to_bytes(4, "little") + b"."
    assert [op.name for op, _, _ in pickletools.genops(data)][2] == "LONG_BINPUT"
    assert "free here" in refused(path, data, room=64 * MIB)
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_a_file_larger_than_the_room_is_not_read(path: Path) -> None:
    assert "max_entries" in refused(path, b"\x80\x04" + bytes(1000), room=100)


@given(st.binary(max_size=200), st.integers(0, 6000))
def test_any_damage_is_either_read_or_refused(damage: bytes, at: int) -> None:
    whole = pickle.dumps(written(out_of_memory()))
    at %= len(whole)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "snapshot.pickle")
        path.write_bytes(whole[:at] + damage + whole[at + len(damage) :])
        with suppress(UsageError):
            read_snapshot(path, GIB)
