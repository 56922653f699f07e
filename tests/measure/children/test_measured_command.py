"""Commands are measured from outside, and ended where they go over a limit."""

from __future__ import annotations

import sys

import pytest

from memfit.errors import UsageError
from memfit.measure.children.measured_command import measure

MIB = 2**20
HOLD = "import time; block = bytearray(int({mib} * 2**20)); time.sleep(0.2)"


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_the_peak_is_what_the_process_holds() -> None:
    small, large = (
        measure(python(HOLD.format(mib=mib)), memory=2**30, timeout=30) for mib in (1, 101)
    )
    assert small.exit_code == large.exit_code == 0
    assert abs(large.peak_bytes - small.peak_bytes - 100 * MIB) < 4 * MIB


def test_a_spike_is_not_missed() -> None:
    spike = "block = bytearray(80 * 2**20); del block; import time; time.sleep(0.3)"
    done = measure(python(spike), memory=2**30, timeout=30)
    assert done.peak_bytes > 80 * MIB


def test_children_count() -> None:
    code = (
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {HOLD.format(mib=90)!r}])"
    )
    done = measure(python(code), memory=2**30, timeout=30)
    assert done.peak_bytes > 90 * MIB


def test_what_goes_over_its_memory_is_ended() -> None:
    grow = "blocks = []\nwhile True:\n    blocks.append(bytearray(2**20))"
    done = measure(python(grow), memory=150 * MIB, timeout=30)
    assert done.over_limit and not done.timed_out
    assert done.exit_code is None
    assert 150 * MIB < done.peak_bytes < 2**30


def test_what_takes_too_long_is_ended_with_its_children() -> None:
    done = measure(["sh", "-c", "sleep 100 & sleep 100"], memory=2**30, timeout=0.3)
    assert done.timed_out and not done.over_limit
    assert done.seconds < 10


def test_output_and_exit_code_are_kept() -> None:
    done = measure(python("print('so'); raise SystemExit(7)"), memory=2**30, timeout=30)
    assert (done.exit_code, done.output.strip()) == (7, "so")


def test_a_command_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="Check the command after --"):
        measure(["no-such-command-here"], memory=2**30, timeout=1)
