"""Tensors of an update as a card's allocator would see them."""

from __future__ import annotations

from typing import Any

import pytest

from memfit.measure.survey.cycle import Cycle
from memfit.measure.survey.device_survey import WORKSPACE, survey_device
from memfit.measure.survey.recorded_allocations import WORK_DONE
from memfit.measure.survey.tensor_events import record_tensors_twice
from memfit.model.training import Work
from memfit.units import MIB

torch = pytest.importorskip("torch")


def training(batch: int, wide: int = 256) -> tuple[Any, Any]:
    """A linear layer without bias, and one update of it."""
    net = torch.nn.Linear(wide, wide, bias=False)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    inputs = torch.ones(batch, wide)

    def update() -> None:
        optimizer.zero_grad()
        net(inputs).square().sum().backward()
        optimizer.step()

    return [*net.parameters(), inputs], update


def test_an_update_asks_for_what_torch_makes_and_gives_it_back() -> None:
    before, update = training(batch=64)
    found = record_tensors_twice(update, before)
    made = [e for e in found.events if not e.free and not e.marker]
    sizes = [e.bytes for e in made]
    assert found.multiplies
    # The gradient of the first time is left, as is that of the second; nothing else is.
    freed = {e.block for e in found.events if e.free}
    left = [e.bytes for e in made if e.block not in freed]
    assert left == [256 * 256 * 4]
    assert sizes.count(256 * 256 * 4) == 2  # gradients: nothing is copied
    assert sizes.count(64 * 256 * 4) >= 3  # the output, its square, and what comes back
    assert [e.marker for e in found.events if e.marker] == [WORK_DONE] * 2


def test_views_and_what_was_there_before_are_not_asked_for() -> None:
    kept = torch.ones(100)
    found = record_tensors_twice(lambda: kept.view(10, 10).t().add_(1), [kept])
    assert not [e for e in found.events if not e.marker and e.bytes]
    assert not found.multiplies


def test_optimizers_work_as_they_do_on_a_card_and_only_meanwhile() -> None:
    """All at once, so that what comes and goes is as large as all parameters together."""
    nets = [torch.nn.Linear(64, 64, bias=False) for _ in range(8)]
    parameters = [p for net in nets for p in net.parameters()]
    optimizer = torch.optim.Adam(parameters)
    for p in parameters:
        p.grad = torch.ones_like(p)
    optimizer.step()
    before = [*parameters, *(p.grad for p in parameters)]
    before += [t for state in optimizer.state.values() for t in state.values()]
    each = 64 * 64 * 4
    peak = Cycle.of(record_tensors_twice(optimizer.step, before).events).live_peak
    assert peak >= 8 * each
    one_by_one = torch.optim.Adam(parameters, foreach=False)
    one_by_one.load_state_dict(optimizer.state_dict())
    one_by_one.param_groups[0]["foreach"] = False
    before += [t for state in one_by_one.state.values() for t in state.values()]
    assert Cycle.of(record_tensors_twice(one_by_one.step, before).events).live_peak < 4 * each


class Driven:
    """As much of a driven training as is surveyed."""

    def __init__(self) -> None:
        self.net = torch.nn.Linear(256, 256, bias=False)
        self.inputs: Any = None

    def collect(self, work: Work) -> None:
        self.inputs = torch.ones(work.batch, 256)

    def update(self, work: Work, mark: object) -> None:
        self.net.zero_grad()
        self.net(self.inputs).square().sum().backward()

    def samples_of(self, work: Work) -> int:
        return work.batch

    def tensors(self) -> list[Any]:
        return list(self.net.parameters())


def test_two_small_updates_tell_the_allocator_of_a_large_one() -> None:
    found: Any = Driven()
    reading = survey_device(found, Work(batch=32, knobs={}), 32, 64, 4096)
    parameters = 256 * 256 * 4
    assert reading.workspaces == 2 * WORKSPACE
    assert reading.matched_share == 1.0
    # Of 256 floats a sample: the output, its square's gradient, and one that comes of both.
    each = 256 * 4
    assert 2 * each <= reading.live.per_unit <= 4 * each
    at = reading.allocated.at(4096)
    assert at >= parameters + 2 * WORKSPACE + reading.live.at(4096) - MIB
    assert at <= reading.reserved.at(4096) <= at + 64 * MIB
    assert set(reading.other_settings) == {"expandable_segments:True", "max_split_size_mb:128"}

    large = Driven()
    whole = record_tensors_twice(
        lambda: large.update(Work(batch=4096, knobs={}), None), [_filled(large), *large.tensors()]
    )
    assert reading.live.at(4096) == pytest.approx(Cycle.of(whole.events).live_peak, rel=0.001)


def _filled(training: Driven) -> Any:
    training.collect(Work(batch=4096, knobs={}))
    return training.inputs
