"""A plan says what of a script's rest it has, and what not."""

from __future__ import annotations

from pathlib import Path

import pytest

from memfit.api.plan import plan

pytestmark = pytest.mark.torch

SCRIPT = """
import numpy as np
from stable_baselines3 import PPO
model = PPO("MlpPolicy", "CartPole-v1", n_steps=64, batch_size=64, n_epochs=1, device="cpu")
model.learn(64)
{after}
"""


@pytest.mark.parametrize(
    ("after", "rows", "note"),
    [
        ("model.save('model')\nprint('done')", {}, ""),
        pytest.param(
            "table = np.ones((64, 2**20), np.uint8)\nopen('results.csv').read()",
            {"after.rest": 64},
            "from line 6 (ones(), read(), open()), and failed at line 7 with nothing trained "
            "(FileNotFoundError: ",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_what_follows_learning_has_rows_or_a_note(
    after: str, rows: dict[str, int], note: str, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.format(after=after))
    found = plan(script)
    sizes = {n: b for n, b in found.ledger.row_bytes.items() if n.startswith("after.")}
    assert sizes == pytest.approx({name: size * 2**20 for name, size in rows.items()}, rel=0.05)
    said = [text for text in found.notes if "goes on after learn()" in text]
    assert len(said) == bool(note) and all(note in text for text in said)
    assert ("evaluate" in found.ledger.phase_bytes) == bool(rows)
    assert not (tmp_path / "model.zip").exists()
