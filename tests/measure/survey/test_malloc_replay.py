"""The replay gives this machine's own malloc the work, and takes no memory for it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from memfit.measure.kernel.proc import PeakMeter
from memfit.measure.survey.malloc_replay import replay_often
from memfit.measure.survey.replay_steps import Alloc, Free, Moment, Run, RunNumbers, Step

MIB = 2**20
# Beyond the largest size that malloc may keep on its heap, every block is a mapping of its own.
LARGE = 33 * MIB


def replay(steps: Iterable[Step]) -> dict[str, int]:
    return replayed(Run(first=tuple(steps)))


def replayed(run: Run) -> dict[str, int]:
    found = replay_often(RunNumbers.of(run), seeds=[None])
    return {moment: growth.mean for moment, growth in found.items()}


@given(st.lists(st.integers(LARGE, 4 * LARGE), min_size=1, max_size=6))
def test_large_blocks_cost_what_is_asked_for(sizes: list[int]) -> None:
    steps: list[Step] = [Moment("hold")]
    steps += [Alloc(i, size) for i, size in enumerate(sizes)]
    growth = replay(steps)["hold"]
    assert sum(sizes) <= growth <= sum(sizes) + len(sizes) * 3 * 4096


def test_what_is_freed_first_does_not_add_up() -> None:
    steps: list[Step] = [Moment("one after the other")]
    for i in range(8):
        steps += [Alloc(i, LARGE), Free(i)]
    assert replay(steps)["one after the other"] < LARGE + MIB


def test_each_moment_has_its_own_peak() -> None:
    steps: list[Step] = [Moment("a"), Alloc(1, LARGE), Moment("b"), Alloc(2, 2 * LARGE), Free(2)]
    steps += [Free(1), Moment("c")]
    found = replay(steps)
    assert LARGE <= found["a"] < LARGE + MIB
    assert 3 * LARGE <= found["b"] < 3 * LARGE + MIB
    assert found["c"] < MIB


def test_work_that_repeats_is_replayed_as_often_as_it_grows() -> None:
    """One iteration after the other holds one block more, up to three that add nothing."""

    def run(iterations: int, *, grows: bool) -> Run:
        odd: list[Step] = [Alloc("odd", LARGE)]
        even: list[Step] = [Alloc("even", LARGE)]
        if not grows:
            odd, even = [*odd, Free("odd")], [*even, Free("even")]
        first = (Moment("m"), Alloc("first", LARGE))
        return Run(first=first, odd=tuple(odd), even=tuple(even), iterations=iterations)

    assert 9 * LARGE <= replayed(run(9, grows=True))["m"] < 9 * LARGE + MIB
    assert 2 * LARGE <= replayed(run(9, grows=False))["m"] < 2 * LARGE + MIB


def test_a_terabyte_is_replayed_without_memory() -> None:
    meter = PeakMeter()
    meter.start()
    before = meter.now()
    growth = replay([Moment("huge"), *(Alloc(i, 2**36) for i in range(16))])["huge"]
    assert growth >= 2**40
    assert meter.peak() - before < 8 * MIB


def test_forks_do_not_disturb_each_other_or_the_caller() -> None:
    steps: list[Step] = [Moment("m"), *(Alloc(i, LARGE) for i in range(3))]
    numbers = RunNumbers.of(Run(first=tuple(steps)))
    first, second = replay_often(numbers, range(3)), replay_often(numbers, range(3))
    assert first["m"].mean <= first["m"].likely <= first["m"].most
    assert abs(first["m"].mean - second["m"].mean) < MIB


def test_the_growth_is_what_becomes_resident_when_the_blocks_are_written() -> None:
    """The replay's figure for blocks on malloc's heap, against the kernel's for the same blocks."""
    program = """
import ctypes, random
from memfit.measure.kernel.proc import PeakMeter
from memfit.measure.survey.malloc import Malloc
from memfit.measure.survey.malloc_replay import replay_often
from memfit.measure.survey.replay_steps import Alloc, Free, Moment, Run, RunNumbers
draw = random.Random(7)
steps, alive = [Moment("m")], []
for i in range(400):
    if alive and draw.random() < 0.45:
        steps.append(Free(alive.pop(draw.randrange(len(alive)))))
    else:
        steps.append(Alloc(i, draw.choice((200_000, 900_000, 3_000_000, 9_000_000))))
        alive.append(i)
predicted = replay_often(RunNumbers.of(Run(first=tuple(steps))), range(6))["m"]
malloc, meter, blocks = Malloc(), PeakMeter(), {}
before = meter.now()
meter.start()
for step in steps[1:]:
    if isinstance(step, Alloc):
        blocks[step.name] = malloc.allocate(step.bytes)
        ctypes.memset(blocks[step.name], 1, step.bytes)
    else:
        malloc.free(blocks.pop(step.name))
print(predicted.likely, meter.peak() - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    predicted, measured = map(int, done.stdout.split())
    assert measured > 50 * MIB
    assert abs(predicted - measured) / measured < 0.08
