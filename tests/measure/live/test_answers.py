"""Whatever a process answers, `explain` shows what can be seen, and says what was not told."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memfit.analyses.attribution import deal
from memfit.cli.app import main
from memfit.measure.live import process_tree
from memfit.measure.live.inside_view import look_inside
from memfit.measure.live.listener_client import NoAnswer
from tests.measure.live import crafted_answers

MIB = 2**20


@contextmanager
def answering(*words: object) -> Iterator[int]:
    """A process that answers in some way; its number."""
    command = [sys.executable, "-S", crafted_answers.__file__, *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            yield process.pid
        finally:
            process.kill()


def explained(pid: int, capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """The notes of `memfit explain`, which explains the process all the same."""
    assert main(["explain", str(pid), "--format", "json", *words]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert err == "" and found["pss_bytes"] > MIB and found["components"]
    notes: list[str] = found["notes"]
    return notes


@pytest.mark.parametrize("way", ["silent", "slow"])
def test_a_process_that_does_not_answer_in_time_is_told(
    way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(way) as pid:
        notes = explained(pid, capsys, "--wait", "0.5s")
        assert main(["explain", str(pid), "--no-inside", "--format", "json"]) == 0
        assert json.loads(capsys.readouterr().out)["notes"] == []
    # Others tell what a busy machine had no time for, which leaves it less to answer too.
    (note,) = (note for note in notes if "did not answer within 0." in note)
    assert str(pid) in note
    assert "what objects hold was read from outside" in note


def test_a_name_that_another_process_has_taken_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as target:
        with answering("fuzz", target.pid) as other:
            notes = explained(target.pid, capsys)
        target.kill()
    (note,) = (note for note in notes if f"process {other} has taken the name" in note)
    assert str(target.pid) in note


EXPLAINING = """
import sys
from memfit.cli.app import main
code = main()
with open("/proc/self/status") as file:
    high = next(line.split()[1] for line in file if line.startswith("VmHWM"))
sys.stderr.write(str(int(high) * 1024))
sys.exit(code)
"""


def test_an_answer_without_end_takes_no_memory() -> None:
    """1.5 GB are offered; a few MiB of them are taken."""
    with answering("endless") as pid:
        words = ["explain", str(pid), "--format", "json", "--wait", "30s"]
        command = [sys.executable, "-c", EXPLAINING, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=90)
    note = " ".join(json.loads(done.stdout)["notes"])
    assert "longer than 16.0 MiB" in note
    assert 20 * MIB < int(done.stderr) < 150 * MIB


def test_nonsense_is_told_and_not_believed(capsys: pytest.CaptureFixture[str]) -> None:
    seeds = [seed for seed in range(200) if b"arrays" not in crafted_answers.answer(seed)][:4]
    for seed in seeds:
        with answering("fuzz", "", seed) as pid:
            note = " ".join(explained(pid, capsys))
            assert str(pid) in note and "in vain" in note


def test_control_characters_of_an_answer_reach_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = next(
        s
        for s in range(500)
        if crafted_answers.answer(s) == json.dumps(crafted_answers.GOOD).encode()
    )
    for form in ("terminal", "md"):
        with answering("fuzz", "", good) as pid:
            words = ["explain", str(pid), "--format", form, "--no-native", "--all"]
            assert main([*words, "--wait", "30s"]) == 0
        out = capsys.readouterr().out
        assert r"agent\x1b]0;title\x07" in out.replace("\\\\", "\\")
        assert "\x1b" not in out and "\x07" not in out


def asked(seeds: range) -> Counter[str]:
    """How the answers of these seeds are taken; each within seconds."""
    outcomes: Counter[str] = Counter()
    with answering("fuzz", "", seeds.start) as pid:
        view = process_tree.read_process(pid, numbers=None)
        for seed in seeds:
            started = time.monotonic()
            try:
                told = look_inside(view, duplicates=False, timeout=20.0)
            except NoAnswer:
                outcomes["refused"] += 1
            else:
                assert told is not None
                dealt = deal(view, told)
                assert 0 <= dealt.unnamed <= view.private
                outcomes["told"] += 1
            assert time.monotonic() - started < 10.0, seed
    return outcomes


def test_fuzzed_answers_are_taken_or_refused() -> None:
    outcomes = asked(range(200))
    assert outcomes["told"] > 30 and outcomes["refused"] > 60


@pytest.mark.slow
def test_many_fuzzed_answers_are_taken_or_refused() -> None:
    outcomes = asked(range(1000, 2000))
    assert outcomes["told"] > 150 and outcomes["refused"] > 300
