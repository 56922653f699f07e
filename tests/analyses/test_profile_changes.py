"""What changed since a baseline, and what of it is beyond noise."""

from __future__ import annotations

from dataclasses import replace

from memfit import render
from memfit.analyses.profile_changes import changes
from tests import samples_profile


def test_a_profile_does_not_differ_from_itself() -> None:
    now = samples_profile.stable()
    found = list(changes(render.profile_json(now), now))
    assert found and not any(row.beyond_noise for row in found)


def test_more_bytes_an_env_are_told_and_little_is_noise() -> None:
    now = samples_profile.stable()
    before = render.profile_json(now)
    assert now.bytes_per_env is not None
    more = replace(now, bytes_per_env=now.bytes_per_env + 600_000)
    assert [row.name for row in changes(before, more) if row.beyond_noise] == ["bytes_per_env"]
    little = replace(now, bytes_per_env=now.bytes_per_env + 10_000)
    assert not any(row.beyond_noise for row in changes(before, little))


def test_what_the_baseline_lacks_is_left_out() -> None:
    assert list(changes({"kind": "profile"}, samples_profile.stable())) == []
