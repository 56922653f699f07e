"""Rows of a live process tree and the changes that they ask for."""

from collections.abc import Mapping, Sequence

import pytest

from memfit.analyses.explain_advice import explain_advice
from memfit.model import Advice, Holder, Kind, Ledger, ProcessView, Repeated, const
from memfit.model.explanation import Dealt
from memfit.units import GIB, MIB
from tests.samples import row
from tests.samples_live import NOW

LIBRARY = ("python.stable_baselines3", Kind.OBJECTS, 2, "Python objects")


Row = tuple[str, Kind, int, str]


def ledger(*rows: Row) -> Ledger:
    return Ledger(
        components=tuple(
            row(name, kind, const(mib * MIB), NOW, where=where) for name, kind, mib, where in rows
        )
    )


def process(pid: int = 1, private: int = 300, **settings: str) -> ProcessView:
    return ProcessView(
        pid=pid,
        parent=0,
        name="python",
        command="",
        seconds=1.0,
        rss=0,
        pss=0,
        private=private * MIB,
        reserved=0,
        parts=(),
        pools=(),
        settings=settings,
    )


def advised(
    *rows: Row,
    limit: int = GIB,
    repeated: Sequence[Repeated] = (),
    processes: Sequence[ProcessView] = (),
    dealt: Mapping[int, Dealt] | None = None,
) -> tuple[Advice, ...]:
    own = ledger(*rows)
    return explain_advice(own, (process(), *processes), dealt or {}, limit, repeated)


NEXT = ("model.replay_buffer.next_observations", Kind.BUFFER, 300, "outside: uint8 3000x1x84x84")


def test_next_observations_of_the_library_need_not_be_stored() -> None:
    (one,) = advised(LIBRARY, NEXT)
    assert (one.code, one.saves_bytes, one.safe) == ("MF005", 300 * MIB, True)
    assert "replay_buffer_class=memfit.dropins.WindowReplayBuffer" in one.change
    assert one.costs and not one.verified


def test_stacks_that_were_seen_are_named() -> None:
    seen = Repeated(
        kind="repeated frames",
        holders=("model.replay_buffer.observations",),
        saves_bytes=1,
        message="",
    )
    (one,) = advised(LIBRARY, NEXT, repeated=(seen,))
    assert "each frame of a stack once" in one.change


@pytest.mark.parametrize(
    "rows",
    [
        (NEXT,),  # somebody's own buffer of that name
        (LIBRARY, ("model.replay_buffer.rewards", Kind.BUFFER, 300, "float32 3000x1")),
        (LIBRARY, ("replay_buffer.next_observations['achieved_goal']", Kind.BUFFER, 300, "")),
        (LIBRARY, (*NEXT[:2], 1, ""), ("heap", Kind.HEAP, 900, "")),  # a trifle
    ],
)
def test_what_changes_nothing_is_not_advised(rows: tuple[Row, ...]) -> None:
    assert advised(*rows) == ()


def test_float64_observations_are_half_as_large_as_float32() -> None:
    rows = (LIBRARY, ("m.rollout_buffer.observations", Kind.BUFFER, 200, "outside: float64 64x8"))
    (one,) = advised(*rows)
    assert (one.code, one.saves_bytes, one.safe) == ("MF007", 100 * MIB, False)
    assert one.to_rounding


def test_the_largest_saving_comes_first() -> None:
    wide = ("m.replay_buffer.observations", Kind.BUFFER, 200, "outside: float64 64x8")
    after = ("m.replay_buffer.next_observations", Kind.BUFFER, 300, "outside: float64 64x8")
    found = advised(LIBRARY, wide, after)
    assert [(one.code, one.saves_bytes) for one in found] == [
        ("MF005", 300 * MIB),
        ("MF007", 250 * MIB),
    ]


def test_what_malloc_keeps_is_advised_where_memory_is_short() -> None:
    rows = (("malloc.free", Kind.FRAGMENTATION, 100, ""), ("heap", Kind.HEAP, 500, ""))
    (one,) = advised(*rows)
    assert (one.code, one.saves_bytes, one.safe) == ("MF012", 100 * MIB, True)
    assert "MALLOC_ARENA_MAX=2" in one.change
    assert advised(*rows, limit=64 * GIB) == ()
    own = ledger(*rows)
    assert explain_advice(own, (process(MALLOC_ARENA_MAX="2"),), {}, GIB) == ()


def workers(private: int) -> tuple[Advice, ...]:
    own = [
        Holder(
            path=path,
            kind=Kind.OBJECTS,
            bytes=mib * MIB,
            reserved=mib * MIB,
            count=1,
            what="",
            told=False,
        )
        for path, mib in (("python.torch", 40), ("python.stable_baselines3", 2))
    ]
    rows = (
        LIBRARY,
        ("workers.python.torch", Kind.WORKER, 120, ""),
        ("workers.python.stable_baselines3", Kind.WORKER, 6, ""),
    )
    dealt = {pid: Dealt(holders=list(own), left=[]) for pid in (2, 3, 4)}
    return advised(
        *rows, processes=[process(pid, private=private) for pid in (2, 3, 4)], dealt=dealt
    )


def test_workers_that_import_again_could_share_one_copy() -> None:
    (one,) = workers(private=150)
    assert (one.code, one.saves_bytes, one.safe) == ("MF006", 84 * MIB, True)


def test_forked_workers_share_already() -> None:
    assert workers(private=20) == ()
