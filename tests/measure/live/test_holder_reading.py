"""A process is read again while much of it has no holder, and what was dropped is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest

from memfit.errors import UsageError
from memfit.measure.live import holder_reading, process_tree
from memfit.measure.live.holder_reading import WAIT, HolderReading, read_holders
from memfit.measure.live.listener_client import NoAnswer
from memfit.model import Layer, Native, Part, ProcessView, Told
from memfit.model.explanation import Dealt

MIB = 2**20
TOLD = Told(
    pid=0,
    arrays=(),
    objects=(),
    repeated=(),
    free=0,
    seconds=1.0,
    longest_hold_seconds=0.01,
    pools={},
    notes=("of the first",),
)


def view(pid: int, *, private: int = 100 * MIB, heap: bool = True) -> ProcessView:
    return ProcessView(
        pid=pid,
        parent=1,
        name="python",
        command="python train.py",
        seconds=1.0,
        rss=private,
        pss=private,
        private=private,
        reserved=private,
        parts=(),
        pools=(),
        native=Native(libraries={"libtorch": 1} if heap else {}),
    )


def block(private: int) -> Part:
    return Part(
        name="block",
        layer=Layer.BLOCKS,
        bytes=private,
        resident=private,
        reserved=private,
        private=private,
        where="",
    )


@dataclass
class Tree:
    """Processes that can be read and asked, and what is found each time."""

    shares: dict[int, list[float]]
    blocks: float = 0.0
    heap: bool = True
    ends_after: int = 99
    told: list[int] = field(default_factory=list)
    read: list[int] = field(default_factory=list)
    walkable: tuple[int, ...] = ()
    walked: list[int] = field(default_factory=list)

    def read_tree(self, _: int, **__: object) -> list[ProcessView]:
        return [view(pid, heap=self.heap) for pid in self.shares]

    def read_process(self, pid: int, **_: object) -> ProcessView:
        if len(self.read) >= self.ends_after:
            raise UsageError("it has ended")
        self.read.append(pid)
        return view(pid, private=(100 + len(self.read)) * MIB)

    def look_inside(self, view: ProcessView, **_: object) -> Told:
        self.told.append(view.pid)
        return replace(
            TOLD, pid=view.pid, notes=() if self.told.count(view.pid) > 1 else TOLD.notes
        )

    def deal(self, view: ProcessView, told: Told | None) -> Dealt:
        assert told is None or told.pid == view.pid
        share = self.shares[view.pid].pop(0)
        left = [block(round(self.blocks * view.private))] if self.blocks else []
        return Dealt(named=round(share * view.private), private=view.private, left=left)


class Looks:
    """What is seen of a tree's processes from outside."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    def __enter__(self) -> Looks:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def variables(self, view: ProcessView, _: float) -> None:
        if view.pid not in self.tree.walkable:
            raise NoAnswer("no interpreter")
        self.tree.walked.append(view.pid)

    def goes_on(self, view: ProcessView) -> bool:
        return view.pid in self.tree.walked

    def libraries(self, view: ProcessView, _: float) -> None:
        self.tree.walked.append(view.pid)

    def told(self, view: ProcessView) -> Told:
        return replace(TOLD, pid=view.pid, outside=True, notes=())

    def note(self) -> str:
        return ""


Reader = Callable[..., HolderReading]
AMPLE = 3600.0  # seconds: a busy machine changes nothing


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Reader:
    def read(
        tree: Tree,
        *,
        inside: bool = True,
        native: bool | None = None,
        within: float = AMPLE,
        wait: float = WAIT,
    ) -> HolderReading:
        monkeypatch.setattr(process_tree, "read_tree", tree.read_tree)
        monkeypatch.setattr(process_tree, "read_process", tree.read_process)
        monkeypatch.setattr(holder_reading, "look_inside", tree.look_inside)
        monkeypatch.setattr(holder_reading, "OutsideLooks", lambda *_: Looks(tree))
        first = next(iter(tree.shares))
        return read_holders(
            first,
            tree.deal,
            children=True,
            inside=inside,
            native=native,
            duplicates=True,
            within=within,
            wait=wait,
        )

    return read


@pytest.mark.parametrize(
    ("shares", "kept", "asked"),
    [
        ([0.95], 0, 1),
        ([0.5, 0.95], 1, 1),
        ([0.5, 0.6, 0.95], 2, 1),
        ([0.5, 0.6, 0.7, 0.8], 3, 2),  # before the last it is asked again
        ([0.5, 0.8, 0.7, 0.6], 1, 2),
        ([0.8, 0.7, 0.6, 0.5], 0, 2),  # the first may be the best, and four is the end
    ],
)
def test_the_reading_that_names_most_is_kept(
    reader: Reader, shares: list[float], kept: int, asked: int
) -> None:
    tree = Tree(shares={7: list(shares)})
    found = reader(tree)
    (readings,) = found.readings
    assert (readings.pid, readings.kept) == (7, kept)
    assert readings.held_shares == pytest.approx(shares, abs=1e-6)
    assert found.dealt[7].named == readings.named[kept]
    assert found.processes[0].private == readings.private[kept] == (100 + kept) * MIB
    assert tree.told == [7] * asked
    # Whatever is kept, all telling is accounted for, and notes and repeated data stay.
    assert found.told[7].seconds == asked * 1.0
    assert found.told[7].notes == ("of the first",)
    assert not tree.shares[7]


def test_large_blocks_without_a_name_are_reason_enough(reader: Reader) -> None:
    assert len(reader(Tree(shares={7: [0.95] * 4}, blocks=0.04)).readings[0].named) == 4
    assert len(reader(Tree(shares={7: [0.95] * 4}, blocks=0.02)).readings[0].named) == 1


def test_what_is_much_is_a_share_of_the_whole_tree(reader: Reader) -> None:
    """Half of a small worker is little where there are twenty of them."""
    shares = {pid: [0.5] if pid == 9 else [1.0] for pid in range(1, 21)}
    found = reader(Tree(shares=shares))
    assert [len(r.named) for r in found.readings] == [1] * 20


@pytest.mark.parametrize(
    "tree",
    [
        Tree(shares={7: [0.5, 0.6]}, ends_after=0),
        Tree(shares={7: [0.5, 0.6]}, heap=False),
    ],
)
def test_nothing_new_can_be_read_of_what_has_ended_or_shows_no_heap(
    reader: Reader, tree: Tree
) -> None:
    found = reader(tree)
    assert found.readings[0].held_shares == (0.5,)
    assert found.dealt[7].named == 50 * MIB


@pytest.mark.parametrize(("inside", "native"), [(True, False), (False, True)])
def test_without_asking_or_following_there_is_one_reading(
    reader: Reader, inside: bool, native: bool
) -> None:
    tree = Tree(shares={7: [0.2], 8: [0.3]})
    assert [r.held_shares for r in reader(tree, inside=inside, native=native).readings] == [
        (0.2,),
        (0.3,),
    ]


def test_from_outside_alone_nothing_is_dealt_out(reader: Reader) -> None:
    found = reader(Tree(shares={7: []}), inside=False)
    assert (found.readings, found.dealt, found.told) == ([], {}, {})


def test_only_those_that_listen_are_dealt_out(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = Tree(shares={7: [1.0], 8: []})
    listening: Sequence[int] = (7,)
    ask = tree.look_inside
    monkeypatch.setattr(
        tree, "look_inside", lambda v, **_: ask(v) if v.pid in listening else None, raising=False
    )
    found = reader(tree)
    assert (list(found.told), list(found.dealt), len(found.processes)) == ([7], [7], 2)


def test_what_does_not_listen_is_walked_from_outside(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = Tree(shares={7: [1.0], 8: [0.2], 9: []}, walkable=(7, 8))
    monkeypatch.setattr(tree, "look_inside", lambda *_, **__: None, raising=False)
    found = reader(tree)
    assert (list(found.told), list(found.dealt)) == ([7, 8], [7, 8])
    # The variables of all come before what libraries hold.
    assert tree.walked == [7, 8, 7, 8]
    assert all(told.outside for told in found.told.values())
    assert [len(r.named) for r in found.readings] == [1, 1]  # and is not read again


def test_what_does_not_answer_in_time_is_walked_and_that_is_said(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*_: object, **__: object) -> Told:
        raise NoAnswer("it did not answer within 4 s")

    tree = Tree(shares={7: [1.0]}, walkable=(7,))
    monkeypatch.setattr(tree, "look_inside", silent, raising=False)
    found = reader(tree)
    assert found.told[7].outside
    (note,) = found.notes
    assert "did not answer within 4 s; what objects hold was read from outside" in note


@pytest.mark.parametrize(("wait", "least"), [(WAIT, 0.0), (6000.0, 5000.0)])
def test_who_gives_time_to_tell_has_it_given_where_reading_took_all(
    reader: Reader, monkeypatch: pytest.MonkeyPatch, wait: float, least: float
) -> None:
    given = []

    def asked(*_: object, timeout: float, **__: object) -> None:
        given.append(timeout)

    tree = Tree(shares={7: [1.0]}, walkable=(7,))
    monkeypatch.setattr(tree, "look_inside", asked, raising=False)
    reader(tree, within=-wait, wait=wait)
    assert least <= given[0] <= max(0.2, wait)


def test_what_can_be_neither_asked_nor_walked_is_said(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = Tree(shares={7: []})
    monkeypatch.setattr(tree, "look_inside", lambda *_, **__: None, raising=False)
    found = reader(tree)
    assert (found.told, found.dealt) == ({}, {})
    assert found.notes == ("who holds what in process 7 is not known: no interpreter",)
