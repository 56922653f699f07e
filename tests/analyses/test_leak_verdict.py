"""The verdict over made-up readings: what grows for good is a leak, and nothing else is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfit.analyses.leak_verdict import growing, judge, suspected, waiting_garbage
from memfit.model import Counted, EnvReading, MemoryVerdict
from memfit.units import MIB

LENGTH, FIRST, LEGS = 20, 50, 4  # frames of an episode, episodes of the first leg, legs
Curve = Callable[[int], float]


def run(
    curves: Mapping[str, Curve] | None = None,
    *,
    episodes: bool = True,
    legs: int = LEGS,
    held: Curve | None = None,
    rooms: Callable[[int], Mapping[int, tuple[int, int]]] = lambda episode: {},
    pools: Curve = lambda episode: 0,
) -> list[EnvReading]:
    """Readings at the ends of the parts of legs, each count by a curve over episodes."""

    told = curves or {}

    def at(episode: int, leg: int) -> EnvReading:
        counts = dict.fromkeys((Counted.PYTHON, Counted.MALLOC, Counted.MAPPED), 10 * MIB)
        counts |= dict.fromkeys((Counted.FILES, Counted.THREADS, Counted.PROCESSES), 2)
        for name, curve in told.items():
            counts[Counted[name]] = counts.get(Counted[name], 0) + round(curve(episode))
        used = sum(curve(episode) for name, curve in told.items() if name in ("PYTHON", "MALLOC"))
        return EnvReading(
            frame=LENGTH * episode,
            episode=episode if episodes else 0,
            seconds=episode / 1000,
            held=20 * MIB + round(held(episode) if held else used),
            apart=round(held(episode) - used) if held else 0,
            whole=30 * MIB,
            counts=counts,
            collected=True,
            leg=leg,
            rooms=rooms(episode),
            pools=round(pools(episode)),
        )

    found = [at(FIRST // 4, 0), at(FIRST, 1)]
    for leg in range(2, legs + 1):
        begin = found[-1].episode or found[-1].frame // LENGTH
        found += [at(begin + begin * part // 4, leg) for part in (1, 2, 3, 4)]
    return found


@pytest.mark.parametrize("what", ["PYTHON", "MALLOC"])
@given(each=st.integers(256, 100_000))
def test_what_each_episode_keeps_is_a_leak_to_the_byte(what: str, each: int) -> None:
    judged = judge(run({what: lambda episode: each * episode}))
    assert judged.verdict is MemoryVerdict.LEAKING
    assert judged.bytes_per_episode == pytest.approx(each, rel=0.01)
    assert judged.bytes_per_frame == pytest.approx(each / LENGTH, rel=0.01)
    assert judged.low <= judged.bytes_per_episode * 1.01 and judged.high * 1.01 >= each
    assert [row.what for row in judged.growing] == [Counted[what]]


def test_without_ends_of_episodes_frames_count() -> None:
    judged = judge(run({"PYTHON": lambda episode: 1000 * episode}, episodes=False))
    assert judged.verdict is MemoryVerdict.LEAKING
    assert judged.bytes_per_frame == pytest.approx(50, rel=0.01)
    assert judged.bytes_per_episode == 0


STILL: dict[str, Curve] = {
    "nothing": lambda episode: 0,
    "first uses": lambda episode: 300_000 if episode > 20 else 0,
    "a step": lambda episode: 2 * MIB if episode > 200 else 0,
    "growth that stops": lambda episode: 5000 * min(episode, 120),
    "spikes": lambda episode: 8 * MIB if episode % 7 == 0 else 0,
    "a cache that saturates": lambda episode: MIB * (1 - 2.0 ** (-episode / 20)),
    "a saw": lambda episode: 4000 * (episode % 37),
    "crumbs": lambda episode: 20 * episode,
    "falling": lambda episode: -3000 * episode,
}


@pytest.mark.parametrize("name", STILL)
@pytest.mark.parametrize("what", ["PYTHON", "MALLOC"])
def test_what_does_not_go_on_growing_is_no_leak(name: str, what: str) -> None:
    assert judge(run({what: STILL[name]})).verdict is MemoryVerdict.STABLE


def test_one_leg_is_not_enough_to_call_it_a_leak() -> None:
    readings = run({"PYTHON": lambda episode: 5000 * episode}, legs=1)
    assert suspected(readings) and not growing(readings)


def test_where_nothing_grew_nothing_is_suspected() -> None:
    assert not suspected(run(legs=1))


@pytest.mark.parametrize("what", ["FILES", "THREADS", "PROCESSES"])
def test_files_threads_and_processes_are_counted(what: str) -> None:
    judged = judge(run({what: lambda episode: episode // 2}))
    assert judged.verdict is MemoryVerdict.LEAKING
    assert [row.what for row in judged.growing] == [Counted[what]]
    assert judged.growing[0].per_episode == pytest.approx(0.5, rel=0.05)


def test_a_few_more_files_are_no_leak() -> None:
    judged = judge(run({"FILES": lambda episode: 3 if episode > 60 else 0}))
    assert judged.verdict is MemoryVerdict.STABLE


def test_mapped_memory_that_python_has_for_its_objects_is_not_named_twice() -> None:
    judged = judge(
        run(
            {
                "PYTHON": lambda episode: 50_000 * episode,
                "MAPPED": lambda episode: -(-50_000 * episode // MIB) * MIB,
            },
            pools=lambda episode: 50_000 * episode,
        )
    )
    assert [row.what for row in judged.growing] == [Counted.PYTHON]


def test_a_little_mapped_memory_beside_pythons_arenas_is_seen() -> None:
    judged = judge(
        run(
            {
                "PYTHON": lambda episode: 40_000 * episode,
                "MAPPED": lambda episode: -(-50_000 * episode // MIB) * MIB + 8192 * episode,
            },
            pools=lambda episode: 50_000 * episode,
        )
    )
    assert [row.what for row in judged.growing] == [Counted.PYTHON, Counted.MAPPED]


def test_shared_memory_is_no_arena_of_pythons_and_told_by_its_pages() -> None:
    curves: dict[str, Curve] = {
        "PYTHON": lambda episode: 700 * episode,
        "SHARED": lambda episode: 4096 * episode,
        "FILES": lambda episode: episode,
    }
    judged = judge(run(curves, held=lambda episode: 4800 * episode, legs=2))
    assert judged.verdict is MemoryVerdict.LEAKING
    assert judged.bytes_per_episode == pytest.approx(4800, rel=0.01)
    assert Counted.SHARED in [row.what for row in judged.growing]


def test_mapped_memory_leaks_by_the_kernels_pages() -> None:
    judged = judge(
        run({"MAPPED": lambda episode: 65_536 * episode}, held=lambda episode: 8192 * episode)
    )
    assert judged.verdict is MemoryVerdict.LEAKING
    assert judged.bytes_per_episode == pytest.approx(8192, rel=0.01)


def test_an_array_that_was_reserved_is_filled_and_not_leaked() -> None:
    def rooms(episode: int) -> Mapping[int, tuple[int, int]]:
        return {4096: (64 * MIB, 8192 * episode)}

    judged = judge(run(legs=2, held=lambda episode: 40_000 * episode, rooms=rooms))
    assert judged.verdict is MemoryVerdict.STABLE  # what is filled explains too little of it
    judged = judge(
        run(
            legs=2,
            held=lambda episode: 8192 * 4 * episode,
            rooms=lambda episode: {4096: (64 * MIB, 8192 * 4 * episode)},
        )
    )
    assert judged.verdict is MemoryVerdict.FILLING
    assert judged.ends_at_bytes == pytest.approx(84 * MIB, rel=0.05)


def test_workers_that_keep_something_leak_by_their_pages() -> None:
    def each(episode: int) -> float:
        return 20_000 * episode // 4096 * 4096

    judged = judge(run({"OTHERS": each}, held=each))
    assert judged.verdict is MemoryVerdict.LEAKING
    assert judged.bytes_per_episode == pytest.approx(20_000, rel=0.03)
    little = judge(run({"OTHERS": lambda episode: 4096 * (episode // 30)}))
    assert little.verdict is MemoryVerdict.STABLE


def test_garbage_that_waits_for_the_collector_is_told() -> None:
    first, last = run(legs=1)
    more = {**last.counts, Counted.MALLOC: last.counts[Counted.MALLOC] + 30 * MIB}
    before = replace(last, counts=more, collected=False)
    assert waiting_garbage([first, before, last]) == 30 * MIB
    assert waiting_garbage([first, replace(last, collected=False), last]) == 0


def test_what_malloc_gives_back_was_retained() -> None:
    readings = run(legs=2, held=lambda episode: 50_000 * min(episode, 90))
    assert judge(readings, trimmed=0).verdict is MemoryVerdict.STABLE
    assert judge(readings, trimmed=3 * MIB).verdict is MemoryVerdict.RETAINED


@pytest.mark.parametrize(("times", "told"), [(1.5, 1.5), (2.4, 2.4)])
def test_bytes_are_told_in_pages_where_enough_came(times: float, told: float) -> None:
    each, little = 8000, 800
    many = judge(run({"MALLOC": lambda e: each * e}, legs=6, held=lambda e: times * each * e))
    assert many.bytes_per_episode == pytest.approx(told * each, rel=0.01)
    assert many.low <= many.bytes_per_episode * 1.01 and many.high * 1.01 >= told * each
    few = judge(run({"MALLOC": lambda e: little * e}, held=lambda e: times * little * e))
    assert few.bytes_per_episode == pytest.approx(little, rel=0.01)


@pytest.mark.parametrize("stage", [1.0, 1.25, 1.5, 1.75])
def test_tables_that_double_count_by_their_mean_wherever_the_last_leg_ends(stage: float) -> None:
    def table(episode: int) -> float:
        return 2000 / stage * (1 << int(stage * episode).bit_length())

    grows = judge(run({"PYTHON": lambda e: 8000 * e + table(e)}, legs=7))
    # A table has between 1 and 2 rows for an entry; over a doubling, 1 / ln 2 of them. Where it
    # doubles is known to a reading, four of which are in a leg.
    assert grows.bytes_per_episode == pytest.approx(8000 + 2000 / math.log(2), rel=0.03)


def test_one_large_step_is_no_part_of_a_pace() -> None:
    stepped = judge(run({"PYTHON": lambda e: 8000 * e + (20 * MIB if e > 70 else 0)}))
    assert stepped.bytes_per_episode == pytest.approx(8000, rel=0.01)


@pytest.mark.parametrize("season", [40, 120, 150])
def test_a_wave_that_only_comes_back_to_where_it_was_is_no_leak(season: int) -> None:
    """Readings that rise within the last leg alone, since their distance is near the wave's."""
    heights = (0.2, 1.0, 0.0, 0.9, 0.1, 0.6, 0.05, 0.3, 0.6, 1.01)
    found = [
        replace(
            one, counts={**one.counts, Counted.PYTHON: 10 * MIB + round(season * 4096 * height)}
        )
        for one, height in zip(run(legs=3), heights, strict=True)
    ]
    assert judge(found).verdict is MemoryVerdict.STABLE


def test_a_leak_beside_a_wave_is_seen_once_it_is_higher() -> None:
    judged = judge(run({"PYTHON": lambda e: 3000 * e + 40_000 * (e % 3)}, legs=6))
    assert judged.verdict is MemoryVerdict.LEAKING
