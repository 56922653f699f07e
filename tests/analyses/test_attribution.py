"""Dealing out a process: every byte once, never more than is there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfit.analyses.attribution import deal, kind_of
from memfit.analyses.tree_ledger import grown, named_share, tree_ledger
from memfit.inside import array_blocks
from memfit.model import (
    HeldArrays,
    HeldObjects,
    Holder,
    Kind,
    Layer,
    Native,
    Part,
    ProcessView,
    Told,
)
from memfit.model.explanation import Dealt

LAYERS = (Layer.OBJECTS, Layer.HEAP, Layer.ARENAS, Layer.BLOCKS, Layer.LIBRARIES, Layer.UNKNOWN)
AMOUNTS = st.integers(0, 10**9)


def part(layer: Layer, amount: int, start: int, *, resident: int | None = None) -> Part:
    there = amount if resident is None else resident
    return Part(
        name=f"{start:x}",
        layer=layer,
        bytes=amount,
        resident=there,
        reserved=2 * there,
        private=amount,
        where="here",
        used=there // 2 if layer is Layer.OBJECTS else 0,
        spans=((start, start + max(1, 2 * there)),),
    )


def process(*parts: Part, pid: int = 1) -> ProcessView:
    total = sum(p.bytes for p in parts)
    return ProcessView(
        pid=pid,
        parent=0,
        name="python",
        command="python train.py",
        seconds=1.0,
        rss=total,
        pss=total,
        private=sum(p.private for p in parts),
        reserved=2 * total,
        parts=parts,
        pools=(),
    )


def told(
    arrays: tuple[HeldArrays, ...] = (), objects: tuple[HeldObjects, ...] = (), free: int = 0
) -> Told:
    return Told(
        pid=1,
        arrays=arrays,
        objects=objects,
        repeated=(),
        free=free,
        seconds=0.1,
        longest_hold_seconds=0.01,
        pools={},
    )


def arrays(path: str, *blocks: tuple[int, int], small: int = 0, own: bool = True) -> HeldArrays:
    return HeldArrays(
        path=path,
        bytes=sum(n for _, n in blocks) + small,
        count=1,
        what="float32",
        own=own,
        blocks=blocks,
        small=small,
    )


@st.composite
def processes(draw: st.DrawFn) -> ProcessView:
    amounts = draw(st.lists(st.tuples(st.sampled_from(LAYERS), AMOUNTS), min_size=1, max_size=8))
    return process(*(part(layer, n, 2**40 * (i + 1)) for i, (layer, n) in enumerate(amounts)))


CLAIMS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 10**9), AMOUNTS, AMOUNTS, st.booleans()), max_size=6
)


@given(processes(), CLAIMS, AMOUNTS)
def test_rows_add_up_whatever_is_claimed(
    view: ProcessView, claims: list[tuple[int, int, int, int, bool]], free: int
) -> None:
    answer = told(
        tuple(
            arrays(f"a{i}", (2**40 * at + offset, n), small=small, own=own)
            for i, (at, offset, n, small, own) in enumerate(claims)
        ),
        tuple(
            HeldObjects(path=f"o{i}", of_run=own, small=small, large=n, count=1)
            for i, (_, _, n, small, own) in enumerate(claims)
        ),
        free,
    )
    dealt = deal(view, answer)
    ledger = tree_ledger([view], {view.pid: dealt})
    assert sum(ledger.bytes_of(c) for c in ledger.components) == view.pss
    assert all(ledger.bytes_of(c) >= 0 for c in ledger.components)
    assert 0 <= dealt.named <= dealt.private


def test_an_array_is_named_where_it_lies() -> None:
    view = process(part(Layer.BLOCKS, 1000, 2**40), part(Layer.HEAP, 500, 2**41))
    dealt = deal(view, told((arrays("model.rollout_buffer.observations", (2**40 + 8, 900)),)))
    rows = {h.path: h.bytes for h in dealt.holders}
    assert rows["model.rollout_buffer.observations"] == 900
    assert {(p.layer, p.bytes) for p in dealt.left} == {(Layer.BLOCKS, 100), (Layer.HEAP, 500)}


def test_pages_that_forks_share_count_by_their_part() -> None:
    view = process(part(Layer.BLOCKS, 250, 2**40, resident=1000))
    dealt = deal(view, told((arrays("level", (2**40, 1000)),)))
    assert dealt.holders[0].bytes == 250


def test_a_block_goes_on_in_the_next_mapping() -> None:
    # Of 4,096 bytes of the first one 2,048 are there.
    first, rest = part(Layer.BLOCKS, 2048, 2**40), part(Layer.BLOCKS, 8192, 2**40 + 4096)
    dealt = deal(process(first, rest), told((arrays("level", (2**40 + 16, 10_000)),)))
    assert dealt.holders[0].bytes == 2048 + (10_000 - 4080)


@pytest.mark.parametrize("before", [0, 16])
def test_the_first_page_alone_may_be_no_part(before: int) -> None:
    view = process(part(Layer.BLOCKS, 8192, 2**40 + 4096))
    dealt = deal(view, told((arrays("level", (2**40 + before, 8000)),)))
    assert dealt.holders[0].bytes == 8000


def test_what_lies_in_shared_memory_is_not_counted_twice() -> None:
    view = process(part(Layer.HEAP, 100, 2**40))
    dealt = deal(view, told((arrays("frames", (2**50, 5000), own=False),)))
    ledger = tree_ledger([view], {1: dealt})
    assert sum(ledger.bytes_of(c) for c in ledger.components) == 100
    assert dealt.holders[0].bytes == 5000  # and still told


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("model.rollout_buffer.observations", Kind.BUFFER),
        ("policy.optimizer exp_avg", Kind.OPTIMIZER),
        ("policy.mlp_extractor.0.weight grad", Kind.GRADIENTS),
        ("envs[3].history", Kind.ENV_STATE),
        ("policy.action_net.weight", Kind.PARAMETERS),
        ("train().states", Kind.ARRAYS),
    ],
)
def test_kinds_by_the_words_of_a_path(path: str, kind: Kind) -> None:
    assert kind_of(path) is kind


def test_named_share_leaves_out_what_has_no_layer() -> None:
    view = process(part(Layer.HEAP, 300, 2**40), part(Layer.UNKNOWN, 100, 2**41))
    assert named_share([view]) == 0.75


def test_growth_names_rows_that_came_and_went() -> None:
    before = tree_ledger([process(part(Layer.HEAP, 100, 1), part(Layer.BLOCKS, 2**21, 2**30))])
    after = tree_ledger([process(part(Layer.HEAP, 700, 1))])
    changes = {g.name: g.bytes for g in grown(before, after, 2.0)}
    assert changes == {"malloc.1": 600, "blocks": -(2**21)}  # an address names no block for long
    assert grown(before, after, 2.0)[0].bytes_per_second == 300


def test_workers_are_summed_by_layer_and_small_libraries_together() -> None:
    main = process(*(part(Layer.LIBRARIES, 10 + i, i + 1) for i in range(3)))
    workers = [process(part(Layer.HEAP, 50, 1), pid=pid) for pid in (2, 3)]
    ledger = tree_ledger([main, *workers])
    rows = {c.name: ledger.bytes_of(c) for c in ledger.components}
    assert rows == {"libraries.other": 33, "workers.malloc_heap": 100}


def test_what_workers_hold_is_named_with_the_process_that_has_most() -> None:
    """A leaking worker of several is seen by its holder, and the rows still add up."""
    views = [process(part(Layer.BLOCKS, 100, 1), part(Layer.STACKS, 5, 2), pid=n) for n in range(4)]
    held = {2: {"frames": 60}, 3: {"frames": 60, "kept": 30}}
    dealt = {
        pid: Dealt(
            holders=[
                Holder(
                    path=path,
                    kind=Kind.ARRAYS,
                    bytes=size,
                    reserved=size,
                    count=1,
                    what="float64",
                    pid=pid,
                )
                for path, size in own.items()
            ],
            left=[part(Layer.BLOCKS, 100 - sum(own.values()), 1)],
        )
        for pid, own in held.items()
    }
    ledger = tree_ledger(views, dealt)
    rows = {c.name: ledger.bytes_of(c) for c in ledger.components if c.name.startswith("workers.")}
    assert rows == {
        "workers.frames": 120,
        "workers.kept": 30,
        "workers.large_blocks": 100 + 40 + 10,
        "workers.thread_stacks": 15,
    }
    where = {c.name: c.evidence.where for c in ledger.components}
    assert where["workers.kept"] == "process 3: float64"
    assert where["workers.frames"].startswith("2 processes, 60 B in 2: ")
    assert sum(map(ledger.bytes_of, ledger.components)) == 4 * 105


def test_processes_and_readers_from_outside_call_the_same_blocks_large() -> None:
    assert Native.LEAST_NUMBERS == array_blocks.LARGE
