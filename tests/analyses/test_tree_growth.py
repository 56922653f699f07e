"""What changed between two readings, by names that mean the same in both."""

from __future__ import annotations

from memfit.analyses.tree_ledger import grown, layers, settings
from memfit.model import Kind, Layer, Ledger, Part, ProcessView, ThreadPool, const
from memfit.units import MIB
from tests.samples import row


def ledger(**rows: int) -> Ledger:
    named = {name.replace("__", "."): amount for name, amount in rows.items()}
    return Ledger(components=tuple(row(n, Kind.HEAP, const(a * MIB), ()) for n, a in named.items()))


def changes(before: Ledger, after: Ledger) -> dict[str, int]:
    return {g.name: g.bytes // MIB for g in grown(before, after, 10.0) if g.bytes}


def test_blocks_that_move_did_not_grow() -> None:
    before = ledger(blocks__7f00=100, blocks__7f10=50, malloc__heap=10)
    after = ledger(blocks__7e00=120, blocks__7f10=50, malloc__heap=10)
    assert changes(before, after) == {"blocks": 20}


def test_a_library_that_got_a_row_of_its_own_did_not_grow() -> None:
    before = ledger(libraries__other=30)
    after = ledger(libraries__other=10, libraries__libtorch=20)
    assert changes(before, after) == {}


def _view(threads: int, **variables: str) -> ProcessView:
    def part(layer: Layer, name: str) -> Part:
        return Part(
            name=name, layer=layer, bytes=MIB, resident=MIB, reserved=MIB, private=MIB, where=""
        )

    pool = ThreadPool(name="OpenMP", threads=threads, names=(), reserved=0, resident=0)
    return ProcessView(
        pid=1,
        parent=0,
        name="python",
        command="python",
        seconds=1.0,
        rss=3 * MIB,
        pss=3 * MIB,
        private=3 * MIB,
        reserved=3 * MIB,
        parts=(part(Layer.HEAP, "heap"), part(Layer.ARENAS, "arenas"), part(Layer.FILES, "a")),
        pools=(pool,),
        settings=variables,
    )


def test_layers_are_the_same_rows_in_every_reading() -> None:
    assert layers([_view(1), _view(1)]).row_bytes == {"files": 2 * MIB, "malloc": 4 * MIB}


def test_threads_that_the_program_set_itself_are_told() -> None:
    def configured(view: ProcessView) -> str:
        return next(s.configured for s in settings(view, cores=2) if s.name == "OMP_NUM_THREADS")

    assert configured(_view(1)) == "not set: 2 (cores)"
    assert configured(_view(11)) == "not set: 2 (cores); 12 by the program itself"
    assert configured(_view(11, OMP_NUM_THREADS="2")) == "2; 12 by the program itself"
    assert configured(_view(11, OMP_NUM_THREADS="12")) == "12"
