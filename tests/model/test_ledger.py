"""The peak is the largest moment, never the sum of everything."""

from __future__ import annotations

from time import process_time

from hypothesis import given

from memfit.model import Kind, Ledger, const, knob, phase_of
from tests.model.strategies import knob_values, ledgers
from tests.samples import dqn_ledger, ppo_ledger, row


@given(ledgers)
def test_the_peak_is_the_largest_moment(ledger: Ledger) -> None:
    sums = {
        m: sum(ledger.bytes_of(c) for c in ledger.components if c.alive_in(m))
        for m in ledger.moments
    }
    assert ledger.moment_bytes == sums
    assert ledger.peak.bytes == max(sums.values(), default=0)
    assert ledger.peak.bytes <= sum(map(ledger.bytes_of, ledger.components))


@given(ledgers)
def test_phases_are_the_largest_of_their_moments(ledger: Ledger) -> None:
    for phase, amount in ledger.phase_bytes.items():
        own = [b for m, b in ledger.moment_bytes.items() if phase_of(m) == phase]
        assert amount == max(own)
    assert ledger.peak.bytes == max(ledger.phase_bytes.values(), default=0)


@given(ledgers, knob_values)
def test_at_gives_what_a_new_ledger_gives(ledger: Ledger, knobs: dict[str, int]) -> None:
    fresh = Ledger(components=ledger.components, knobs=knobs)
    assert ledger.at(**knobs).moment_bytes == fresh.moment_bytes
    assert ledger.at(**knobs).knobs == knobs


def test_parts_of_a_phase_are_not_added() -> None:
    ledger = Ledger(
        components=(
            row("buffer", Kind.BUFFER, const(10), ("update",)),
            row("copy", Kind.COPIES, const(5), ("update.flatten",)),
            row("batch", Kind.COPIES, const(7), ("update.minibatch",)),
        )
    )
    assert ledger.moment_bytes == {"update.flatten": 15, "update.minibatch": 17}
    assert (ledger.peak.moment, ledger.peak.phase, ledger.peak.bytes) == (
        "update.minibatch",
        "update",
        17,
    )


def test_a_ledger_of_hundreds_of_rows_works() -> None:
    rows = tuple(row(f"key{i}", Kind.BUFFER, knob("n_envs") * i, ("rollout",)) for i in range(500))
    assert Ledger(components=rows, knobs={"n_envs": 2}).peak.bytes == 2 * sum(range(500))


def test_an_empty_ledger_needs_nothing() -> None:
    assert Ledger(components=()).peak.bytes == 0


def test_what_if_answers_a_thousand_times_a_second() -> None:
    for ledger in (ppo_ledger(), dqn_ledger()):
        start = process_time()
        for batch in range(1, 501):
            _ = ledger.at(batch_size=batch).peak
        assert process_time() - start < 0.5
