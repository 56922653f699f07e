"""The benchmark of device memory: networks as they were, and a table that hides nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks.device import table

torch = pytest.importorskip("torch")

# As torchvision counts them; MnasNet has 10 classes.
PARAMETERS = {
    "ConvNeXtTiny": 28_589_128,
    "MnasNet": 3_115_122,
    "MobileNetV2": 3_504_872,
    "RegNetX400MF": 5_495_976,
    "ResNet101": 44_549_160,
    "VGG16": 138_357_544,
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_networks_have_the_parameters_of_those_that_were_published(name: str) -> None:
    from benchmarks.device.networks import NETWORKS

    with torch.device("meta"):
        network = NETWORKS[name]()
        assert network(torch.empty(2, 3, 86, 86)).shape[0] == 2
    assert sum(p.numel() for p in network.parameters()) == PARAMETERS[name]


def _run(*, real: int, **found: Any) -> dict[str, Any]:
    none = {"bytes": None, "fits": None}
    anchors: dict[str, Any] = dict.fromkeys(("dnnmem", "schedtune", "llmem"), none)
    anchors["xmem"] = {"bytes": real + real // 10, "fits": True}
    return {"kind": "cnn", "gpu": "", "real": real, "real_fits": True, "anchors": anchors, **found}


def test_misses_are_bold_and_what_failed_counts(tmp_path: Path) -> None:
    mib = 2**20
    done = {
        "good": _run(real=1000 * mib, allocated=0, reserved=1010 * mib, fits=True, seconds=3),
        "bad": _run(real=1000 * mib, allocated=0, reserved=1100 * mib, fits=False, seconds=30),
        "lost": _run(real=1000 * mib, failed="why"),
    }
    table.write(done, tmp_path / "README.md", of=4)
    text = (tmp_path / "README.md").read_text()
    assert "Of 4 runs, 3 were predicted" in text
    assert "| good | 1,000 | 1,010 | +1.0% | +10.0% | yes | yes | 3 |" in text
    assert "| bad | 1,000 | 1,100 | **+10.0%** | +10.0% | yes | **no** | **30** |" in text
    assert "| lost | 1,000 | **failed** |" in text
    assert "Not predicted at all: 1. Slower than 15 s: 1." in text
    assert "| memfit | 2 | 5.5% | 1 | 3 |" in text
    assert "| xMem | 3 | 10.0% | 3 | 3 |" in text
