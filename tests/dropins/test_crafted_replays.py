"""A replay file with a right checksum and wrong words is refused, or changes nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stable_baselines3.common.buffers import ReplayBuffer

from memfit.errors import UsageError
from tests.dropins.crafted_replays import fuzzed, joined, split
from tests.dropins.streams import Plan, Stream, same_bits
from tests.dropins.test_replay import FRAMES, STORED, fill, made, sample

SIZE = 40
# Windows of several parts, so that headers have many words; a ring that is full, and one that is
# not.
MIXED = Plan(**{**vars(FRAMES), "kind": "mixed", "dtype": "f4", "lengths": (7, 16)})


def new(plan: Plan, stored: str) -> tuple[Any, Any]:
    return made(ReplayBuffer, plan.space, SIZE, 2, **STORED[stored])


def saved(plan: Plan, stored: str, steps: int, path: Path) -> tuple[Any, Stream]:
    """The library's buffer, the stream that goes on, and ours in a file."""
    theirs, ours = new(plan, stored)
    stream = Stream(plan)
    fill((theirs, ours), {"": stream}, steps)
    ours.save(path)
    ours.close()
    return theirs, stream


def loaded(plan: Plan, stored: str, path: Path) -> Any | None:
    """A buffer of this file, or None where it is refused."""
    ours = new(plan, stored)[1]
    try:
        ours.load(path)
    except UsageError:
        assert ours.pos == 0 and not ours.full  # as it was
        ours.close()
        return None
    return ours


def outcomes(seeds: range, folder: Path) -> Counter[str]:
    """How files of these seeds are taken; what is loaded gives the samples of the good one."""
    found: Counter[str] = Counter()
    cases = [
        (plan, stored, steps)
        for plan in (FRAMES, MIXED)
        for stored in ("memory", "disk", "zstd", "lz4")
        for steps in (25, 90)
    ]
    for number, (plan, stored, steps) in enumerate(cases):
        path = folder / f"{number}"
        theirs, _ = saved(plan, stored, steps, path)
        assert loaded(plan, stored, path) is not None
        good, mine = path.read_bytes(), seeds[number :: len(cases)]
        for seed in mine:
            path.write_bytes(fuzzed(good, seed))
            ours = loaded(plan, stored, path)
            found["refused" if ours is None else "the same"] += 1
            if ours is not None:
                assert (ours.pos, ours.full) == (theirs.pos, theirs.full), seed
                assert same_bits(sample(theirs, 64, seed), sample(ours, 64, seed)), seed
                _goes_on(ours, plan, seed)
                ours.close()
    return found


def _goes_on(ours: Any, plan: Plan, seed: int) -> None:
    """What is added to a loaded buffer comes out of it, all around the ring."""
    theirs, _ = new(plan, "memory")
    theirs.pos = ours.pos
    fill((theirs, ours), {"": Stream(Plan(**{**vars(plan), "seed": seed}))}, SIZE)
    assert same_bits(theirs.observations, np.asarray(ours.observations)), seed
    assert same_bits(theirs.next_observations, np.asarray(ours.next_observations)), seed


def test_fuzzed_files_are_refused_or_the_same(tmp_path: Path) -> None:
    found = outcomes(range(160), tmp_path)
    assert found["refused"] > 130


@pytest.mark.slow
def test_many_fuzzed_files_are_refused_or_the_same(tmp_path: Path) -> None:
    found = outcomes(range(1000, 1600), tmp_path)
    assert found["refused"] > 500


@pytest.mark.parametrize("stored", ["memory", "zstd"])
def test_rows_of_an_env_are_not_taken_for_others(stored: str, tmp_path: Path) -> None:
    """Two extents exchanged: all bytes are there, each checksum is right, the windows are not."""
    path = tmp_path / "buffer"
    saved(FRAMES, stored, 90, path)
    assert loaded(FRAMES, stored, path) is not None
    good, pieces = split(path.read_bytes())
    (lane,) = good["tracks"][""]["lanes"]
    first, second = lane["extents"][0][0], lane["extents"][0][1]
    first["begin"], second["begin"] = second["begin"], first["begin"]
    path.write_bytes(joined(good, pieces))
    assert loaded(FRAMES, stored, path) is None


def test_windows_that_lie_another_way_are_not_taken(tmp_path: Path) -> None:
    """The same rows, read newest first: nothing else in the file would be wrong."""
    path = tmp_path / "buffer"
    saved(FRAMES, "memory", 25, path)
    header, pieces = split(path.read_bytes())
    (part,) = header["tracks"][""]["parts"]
    part["newest_first"] = not part["newest_first"]
    path.write_bytes(joined(header, pieces))
    assert loaded(FRAMES, "memory", path) is None


def test_a_header_may_not_promise_more_than_a_ring_holds(tmp_path: Path) -> None:
    path = tmp_path / "buffer"
    saved(FRAMES, "memory", 25, path)
    assert loaded(FRAMES, "memory", path) is not None
    header, pieces = split(path.read_bytes())
    (lane,) = header["tracks"][""]["lanes"]
    rows, top = lane["extent"], lane["strip"]["top"]
    many = 200_000  # extents, of which none would be touched: gigabytes are reserved at most
    lane["strip"]["free"] = {str(rows): list(range(top, top + rows * many, rows))}
    lane["strip"]["top"] = top + rows * many
    path.write_bytes(joined(header, pieces))
    assert loaded(FRAMES, "memory", path) is None


SAVING = """
import sys
from pathlib import Path
from memfit.dropins.windows.saving import replacing
with replacing(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    print("ready", flush=True)
    sys.stdin.readline()
"""


def _saving(path: Path) -> subprocess.Popen[str]:
    """A process in the middle of a save."""
    process = subprocess.Popen(
        [sys.executable, "-c", SAVING, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def test_what_a_killed_save_left_goes_with_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "buffer[1]*"
    other = tmp_path / f".other.{'0' * 8}.part"
    other.write_bytes(b"of somebody else")
    with _saving(path) as killed:
        killed.send_signal(signal.SIGKILL)
    assert len(list(tmp_path.glob(".buffer*.part"))) == 1
    with _saving(path) as alive:
        (part,) = tmp_path.glob(".buffer*.part")  # that of the killed one has gone already
        saved(FRAMES, "memory", 5, path)
        assert part.exists(), "another process is writing it"
        alive.communicate("\n", timeout=60)
    assert alive.returncode == 0 and path.read_bytes() == b"half"
    assert sorted(os.listdir(tmp_path)) == sorted([other.name, path.name])
    assert time.time() - path.stat().st_mtime < 60
