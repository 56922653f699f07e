"""What held a card's memory: known answers."""

from __future__ import annotations

import pickle
from pathlib import Path

from memfit.device.caching_allocator import CachingAllocator
from memfit.device.held import LARGE, MIDDLE, SMALL, explain_card
from memfit.device.phases import phase_of_stack, place_of_stack
from memfit.device.snapshot_file import read_snapshot
from memfit.model.device_explanation import DeviceExplanation
from memfit.model.device_snapshot import Annotation, DeviceEvent, DeviceSnapshot, StackFrame
from memfit.units import GIB, MIB
from tests.device.programs import Program
from tests.samples_device import out_of_memory, written


def explained(program: Program, tmp_path: Path) -> DeviceExplanation:
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(written(program)))
    (card,) = read_snapshot(path, GIB)
    return explain_card(card)


def test_where_it_ran_out(tmp_path: Path) -> None:
    found = explained(out_of_memory(), tmp_path)
    assert found.ran_out is not None
    assert (found.ran_out.asked, found.ran_out.free) == (50 * MIB, 0)
    assert (found.allocated, found.reserved) == (160 * MIB, 240 * MIB)
    assert (found.split, found.cached, found.largest_free) == (80 * MIB, 0, 20 * MIB)
    assert {p.name: p.bytes for p in found.phases} == {"forward": 120 * MIB, "optimizer": 40 * MIB}
    assert [(p.name, p.bytes, p.blocks) for p in found.stacks] == [
        ("user/train.py:31 update > modules/linear.py:134 forward", 120 * MIB, 6),
        ("user/train.py:31 update > optim/adam.py:196 _init_group", 40 * MIB, 1),
    ]
    fits = {other.settings: other.fits for other in found.others}
    assert fits["as it was"] is False
    assert fits["expandable_segments:True"] is True
    assert fits["max_split_size_mb:64"] is True


def test_the_peak_of_a_history_that_did_not_run_out(tmp_path: Path) -> None:
    program = Program(CachingAllocator())
    for size in (100, 3 * MIB, 30 * MIB):
        program.ask(size)
    program.drop(2)
    found = explained(program, tmp_path)
    assert found.ran_out is None
    assert found.allocated == found.peak_allocated == 33 * MIB + 512
    assert found.reserved == found.peak_reserved == 52 * MIB
    assert found.rounding == 412
    assert {p.name: p.bytes for p in found.sizes} == {LARGE: 30 * MIB, MIDDLE: 3 * MIB, SMALL: 512}
    assert max(m.allocated for m in found.timeline) == found.allocated
    as_it_was = found.others[0]
    assert (as_it_was.peak_reserved, as_it_was.fits) == (52 * MIB, None)


def test_without_a_history_the_end_is_told(tmp_path: Path) -> None:
    program = Program(CachingAllocator(), record=False)
    program.ask(30 * MIB)
    program.ask(12 * MIB)
    program.drop(1)
    found = explained(program, tmp_path)
    assert (found.allocated, found.cached, found.reserved) == (30 * MIB, 12 * MIB, 42 * MIB)
    assert "no history was recorded" in found.notes[0]
    assert not found.others


def test_a_history_with_holes_says_so() -> None:
    events = (DeviceEvent("alloc", 4096, 512), DeviceEvent("free_requested", 512, 512))
    found = explain_card(DeviceSnapshot(device=0, segments=(), events=events))
    assert "do not go with the others" in found.notes[0]


def test_named_stretches_tell_phases() -> None:
    program = Program(CachingAllocator())
    program.ask(30 * MIB)
    program.ask(12 * MIB)
    snapshot = program.snapshot()
    events = tuple(
        DeviceEvent(e.action, e.address, e.size, time=100 if e.size > 20 * MIB else 200)
        for e in snapshot.events
    )
    marks = (
        Annotation("## forward ##", True, 50),
        Annotation("## forward ##", False, 150),
        Annotation("Optimizer.step#AdamW.step", True, 180),
    )
    found = explain_card(
        DeviceSnapshot(device=0, segments=snapshot.segments, events=events, annotations=marks)
    )
    assert {p.name: p.bytes for p in found.phases} == {"forward": 30 * MIB, "optimizer": 12 * MIB}


def test_phases_by_calls() -> None:
    own = StackFrame("/home/user/train.py", 3, "main")
    backward = StackFrame("/venv/torch/_tensor.py", 5, "backward")
    engine = StackFrame("??", 0, "torch::autograd::Engine::evaluate_function(...)")
    assert phase_of_stack((backward, own)) == "backward"
    assert phase_of_stack((engine,)) == "backward"
    assert phase_of_stack((own,)) == "elsewhere"
    assert phase_of_stack(()) == "not recorded"
    assert place_of_stack((backward, own)) == "user/train.py:3 main > torch/_tensor.py:5 backward"
    assert place_of_stack((engine,)) == engine.function
