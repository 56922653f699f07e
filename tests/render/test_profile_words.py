"""What a profile says where little can be told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memfit.render import profile_blocks, profile_json
from memfit.render.terminal import to_text
from memfit.units import KIB
from tests import samples_profile


@pytest.mark.parametrize("slope", [-30.7 * KIB, 0.0, 100.0 * KIB])
def test_a_slope_below_noise_is_said_to_be_less(slope: float) -> None:
    profile = replace(samples_profile.stable(), bytes_per_env=slope)
    text = " ".join(to_text(profile_blocks(profile), width=100).split())
    assert "one more env in one process costs less than 171 KiB, by which two" in text
    assert "6.00 MiB for one more in a worker process" in text
    data = profile_json(profile)
    assert data["bytes_per_env"] == max(0, slope)
    assert data["bytes_per_env_noise"] == 512 * KIB // 3
