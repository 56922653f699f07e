"""What checks find, and do not find, of the envs of planned runs and of what malloc keeps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memfit.checks import fixes
from memfit.dropins import Settings, settings_for
from memfit.model import (
    Component,
    Evidence,
    EvidenceKind,
    Kind,
    Severity,
    const,
)
from memfit.units import GIB, MIB
from tests.checks.runs import Run, dqn, ppo
from tests.checks.test_each import advised, found

# -- MF012 -----------------------------------------------------------------------------------------


def with_slack(slack: int, phases: tuple[str, ...] = ("update",)) -> Run:
    """The rollout of `ppo`, with so much that malloc keeps."""
    spec, ledger = ppo()
    kept = Component(
        name="allocator.slack",
        kind=Kind.FRAGMENTATION,
        size=const(slack),
        phases=phases,
        evidence=Evidence(kind=EvidenceKind.PROBED, where="a replay of allocations"),
    )
    return spec, replace(ledger, components=(*ledger.components, kept))


def test_what_malloc_keeps_is_told_with_its_variables() -> None:
    run = with_slack(100 * MIB)
    (finding,) = found("MF012", run, GIB)
    assert finding.severity is Severity.INFO
    assert "100 MiB of the peak" in finding.message
    wanted = settings_for(run[1])
    assert wanted == Settings(arenas=2, mmap_threshold="1MiB")
    assert wanted.shell() in finding.message
    assert advised("MF012", run) == []  # nobody knows before the run what it saves


def test_what_malloc_keeps_is_nothing_to_tell_far_from_the_limit() -> None:
    run = with_slack(100 * MIB)
    peak = run[1].peak.bytes
    assert found("MF012", run, 2 * peak) and not found("MF012", run, 2 * peak + 1)


def test_malloc_is_named_where_its_settings_are_recommended() -> None:
    least = -(-ppo()[1].peak.bytes // 19)  # a twentieth of the peak, itself included
    assert found("MF012", with_slack(least), GIB)
    assert not found("MF012", with_slack(least - 1), GIB)
    runs = [with_slack(n) for n in (0, 1, least - 1, least, least + 1, 2 * least)]
    runs += [with_slack(least, ("start",)), ppo(), dqn()]
    for run in runs:
        assert bool(found("MF012", run, GIB)) == (settings_for(run[1], processors=2) != Settings())


# -- MF513 -----------------------------------------------------------------------------------------


def with_envs(each: int, n_envs: int = 8) -> Run:
    """The rollout of `ppo`, with envs that keep so much each."""
    spec, ledger = ppo(knobs={"n_envs": n_envs})
    kept = Component(
        name="env.state",
        kind=Kind.ENV_STATE,
        size=const(each * n_envs),
        phases=("build", "rollout", "update"),
        evidence=Evidence(kind=EvidenceKind.MEASURED, where="one more env"),
    )
    return spec, replace(ledger, components=(*ledger.components, kept))


def test_envs_that_are_most_of_a_run_are_told() -> None:
    (finding,) = found("MF513", with_envs(200 * MIB))
    assert "8 envs keep 200 MiB each, 1.56 GiB of the peak" in finding.message
    assert finding.bytes == 8 * 200 * MIB


@pytest.mark.parametrize("run", [with_envs(MIB), with_envs(GIB, n_envs=1), ppo(), dqn()])
def test_few_or_light_envs_are_not(run: Run) -> None:
    assert not found("MF513", run)


# -- MF514 -----------------------------------------------------------------------------------------


def alike(each: int, n_envs: int = 8) -> Run:
    spec, ledger = with_envs(20 * MIB, n_envs)
    names = ("game.level:Graph",) if each else ()
    return replace(spec, built_alike=names, built_alike_bytes=each), ledger


def test_what_envs_build_alike_is_told_with_the_copies_that_need_not_be() -> None:
    (finding,) = found("MF514", alike(10 * MIB))
    assert "each of 8 envs builds the same for itself: game.level:Graph" in finding.message
    assert finding.bytes == 7 * 10 * MIB
    (change,) = fixes(*alike(10 * MIB), GIB, {"MF514"})
    assert change[0].saves_bytes == 7 * 10 * MIB
    assert change[0].safe and change[1].estimated
    assert change[0].changes.once == {"game.level:Graph": True}


@pytest.mark.parametrize("run", [alike(0), alike(10 * MIB, n_envs=1), ppo(), dqn()])
def test_one_env_and_envs_of_their_own_build_nothing_alike(run: Run) -> None:
    assert not found("MF514", run)
