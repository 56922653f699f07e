"""Plans of plain torch trainings, against what the kernel counts when the same loops run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.truth import kernel
from tests.truth.published import bounds

pytestmark = [pytest.mark.truth, pytest.mark.alone, pytest.mark.timeout(120)]

MIB = 2**20


@pytest.mark.parametrize("name", ["autoencoder", pytest.param("pixels", marks=pytest.mark.slow)])
def test_a_torch_run_is_planned_near_the_truth(name: str, tmp_path: Path) -> None:
    true = kernel.run("torch_modules.py", name, cwd=tmp_path).peak
    beside = tmp_path / "torch_modules.py"
    beside.write_text((kernel.SCRIPTS / "torch_modules.py").read_text())
    planned = kernel.python(
        *("-m", "memfit", "plan", f"torch_modules:{name}", "--format", "json", "-q"), cwd=tmp_path
    )
    assert planned.code in (0, 3), planned.err
    answer = json.loads(planned.out)
    figures = (
        f"planned {answer['peak_bytes'] / MIB:.0f}, at most {answer['upper_bytes'] / MIB:.0f}, "
        f"true {true / MIB:.0f} MiB"
    )
    assert abs(answer["peak_bytes"] - true) <= bounds("plan").worst * true, figures
    assert true <= answer["upper_bytes"], figures
