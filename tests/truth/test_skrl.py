"""Plans of skrl scripts against what the kernel counts when they run: as near as is published."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.truth import kernel
from tests.truth.published import bounds
from tests.truth.test_default import compare

pytestmark = [pytest.mark.truth, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.parametrize("script", ["skrl_ppo_vector.py", "skrl_sac_pendulum.py"])
def test_plans_are_as_near_as_published_and_the_truth_is_within_their_bound(
    script: str, tmp_path: Path
) -> None:
    true = kernel.run(script, cwd=tmp_path).peak
    compared = compare(script, true, folder=tmp_path)
    assert compared.error <= bounds("plan").worst, str(compared)
    assert compared.true <= compared.upper, str(compared)
