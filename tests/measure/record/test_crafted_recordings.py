"""A file of others is read within bounds or refused with a reason, never with a traceback."""

from __future__ import annotations

import io
import time
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from memfit.cli.app import main
from memfit.errors import UsageError
from memfit.measure.record import recording_reader
from memfit.measure.record.recording_reader import load
from tests.measure.record import crafted_recordings as crafted

SECONDS = 15.0
COMMANDS = (
    ("explain", "{}"),
    ("explain", "{}", "--format", "json"),
    ("explain", "{}", "--format", "md"),
    ("compare", "{}", "{good}"),
    ("compare", "{good}", "{}", "--format", "json"),
    ("watch", "{}", "--once"),
    ("watch", "{}", "--once", "--format", "json"),
)


def ended(words: tuple[str, ...], path: Path, known: Path) -> int:
    """How a command ends that is given this file."""
    started = time.monotonic()
    code = main([word.format(path, good=known) for word in words])
    assert time.monotonic() - started < SECONDS
    return code


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("known") / "good.db"
    crafted.good(path)
    return path


@pytest.mark.parametrize("name", crafted.REFUSED)
def test_what_is_no_recording_is_refused_with_a_reason(
    name: str, tmp_path: Path, known: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "crafted.db"
    crafted.REFUSED[name](path)
    for words in COMMANDS:
        assert ended(words, path, known) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.startswith("memfit: ") and str(path) in err, err
        assert err.count("\n") == 1 and len(err) < 1000


@pytest.mark.parametrize("name", crafted.TAKEN)
def test_what_was_added_or_is_odd_is_read_all_the_same(
    name: str, tmp_path: Path, known: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "crafted.db"
    crafted.TAKEN[name](path)
    for words in COMMANDS:
        assert ended(words, path, known) == 0, capsys.readouterr().err
    assert "159 MiB" in capsys.readouterr().out


def test_reading_ends_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "long.db"
    crafted.changed(path, crafted.many_readings(20_000))
    assert len(load(path).readings) == 20_000
    monkeypatch.setattr(recording_reader, "_MOST_SECONDS", 0.0)
    with pytest.raises(UsageError, match="takes longer than 0 s"):
        load(path)


def read(seeds: range, folder: Path, known: Path) -> Counter[int]:
    """How all commands ended with the recordings of these seeds."""
    codes: Counter[int] = Counter()
    for seed in seeds:
        path = folder / f"{seed}.db"
        crafted.fuzzed(path, seed)
        for words in COMMANDS if seed % 10 == 0 else (COMMANDS[seed % len(COMMANDS)],):
            said = io.StringIO()
            with redirect_stdout(io.StringIO()), redirect_stderr(said):
                code = ended(words, path, known)
            err = said.getvalue()
            assert code == 0 or (code == 2 and err.startswith("memfit: ")), (seed, words, err)
            codes[code] += 1
        path.unlink()
    return codes


def test_fuzzed_recordings_are_read_or_refused(tmp_path: Path, known: Path) -> None:
    codes = read(range(80), tmp_path, known)
    assert codes[0] > 20 and codes[2] > 50


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_many_fuzzed_recordings_are_read_or_refused(tmp_path: Path, known: Path) -> None:
    codes = read(range(1000, 3000), tmp_path, known)
    assert codes[0] > 200 and codes[2] > 500
