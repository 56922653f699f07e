"""The largest setting fits, and one more does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfit.analyses.capacity import (
    DEVICE,
    HARDWARE,
    MACHINE,
    Hardware,
    capacity,
    default_hardware,
    on_card,
    on_machine,
    parse_hardware,
    searched_knobs,
)
from memfit.errors import UsageError
from memfit.model import Component, Kind, Ledger, Place, const, knob
from memfit.units import GIB, MIB
from tests.samples import dqn_ledger, ppo_ledger, row


@given(st.integers(1, 2**36), st.sampled_from((MACHINE, DEVICE)), st.booleans())
def test_every_border_is_exact(limit: int, place: str, on_policy: bool) -> None:
    ledger = ppo_ledger() if on_policy else dqn_ledger()
    seen = on_card(ledger) if place == DEVICE else on_machine(ledger)
    found = capacity(ledger, Hardware("it", limit, place))
    for name in searched_knobs(ledger):
        if name not in found.largest:
            assert seen.at(**{name: 1}).peak.bytes > limit
        elif (largest := found.largest[name]) is None:
            assert seen.at(**{name: 2**40}).peak.bytes <= limit
        else:
            assert seen.at(**{name: largest}).peak.bytes <= limit
            assert seen.at(**{name: largest + 1}).peak.bytes > limit


def test_a_bounded_batch_has_no_largest_value() -> None:
    """A minibatch is never larger than the rollout, so that any batch size fits."""
    assert capacity(ppo_ledger(), parse_hardware("80GiB")).largest["batch_size"] is None


def test_a_run_that_fits_never_gets_a_smaller_value_than_it_has() -> None:
    ledger = ppo_ledger()
    exact = Hardware("exact", ledger.peak.bytes, MACHINE)
    found = capacity(ledger, exact)
    assert found.fits
    assert found.largest["batch_size"] == ledger.knobs["batch_size"]


def test_nothing_fits_where_the_base_alone_is_too_large() -> None:
    found = capacity(ppo_ledger(), Hardware("tiny", 10 * MIB, MACHINE))
    assert not found.fits
    assert found.largest == {}


def test_only_named_knobs_are_searched() -> None:
    found = capacity(ppo_ledger(), parse_hardware("16GiB"), ["n_envs"])
    assert list(found.largest) == ["n_envs"]


def test_well_known_knobs_come_first_and_the_length_of_a_run_never() -> None:
    assert searched_knobs(ppo_ledger()) == ("n_envs", "n_steps", "batch_size")
    rows = tuple(
        row(name, Kind.BUFFER, knob(name), ("rollout",))
        for name in ("history", "timesteps", "batch_size", "frame_stack")
    )
    ledger = Ledger(components=rows, length="timesteps")
    assert searched_knobs(ledger) == ("batch_size", "frame_stack", "history")


def test_a_card_holds_networks_and_the_minibatch_and_a_context() -> None:
    names = {c.name for c in on_card(ppo_ledger()).components}
    assert names == {
        "cuda.context",
        "policy.parameters",
        "policy.gradients",
        "optimizer.Adam",
        "policy.activations",
        "minibatch.observations",
    }
    found = capacity(ppo_ledger(), parse_hardware("rtx-4090"))
    assert found.place == DEVICE
    assert found.peak_bytes > 500 * MIB


def test_a_machine_does_not_hold_what_is_on_the_card() -> None:
    ledger = ppo_ledger()
    extra = Component(
        name="replay.on_card",
        kind=Kind.BUFFER,
        size=const(GIB),
        phases=("update",),
        evidence=ledger.components[0].evidence,
        place=Place.DEVICE,
    )
    both = Ledger(components=(*ledger.components, extra), knobs=ledger.knobs)
    assert on_machine(both).peak == ledger.peak
    assert extra in on_card(both).components


@pytest.mark.parametrize("name", HARDWARE)
def test_every_name_is_known(name: str) -> None:
    hardware = parse_hardware(f" {name.upper()} ")
    assert hardware == (name, *HARDWARE[name])


def test_a_plain_size_is_a_machine() -> None:
    assert parse_hardware("24GiB") == ("24GiB", 24 * GIB, MACHINE)


@pytest.mark.parametrize("text", ["", "gpu", "0", "rtx-9999", "-4GiB"])
def test_other_text_is_refused_with_the_names(text: str) -> None:
    with pytest.raises(UsageError, match="rtx-4090"):
        parse_hardware(text)


def test_the_default_rows() -> None:
    assert [h.bytes // GIB for h in default_hardware()] == [8, 16, 24, 32, 80]
