"""What `memfit demo fighter` runs: the smallest sizes at which what one more adds stands out."""

from __future__ import annotations

from memfit.model import DemoVariant

VARIANTS = (
    DemoVariant(
        name="as described",
        spec="fighter.toml",
        knob="n_steps",
        options=(
            *("--n-steps", "{value}", "--as-described", "--batch-size", "64"),
            *("--epochs", "1", "--iterations", "2", "--quiet"),
        ),
        values=(64, 256),
        knobs={"batch_size": 64},
    ),
    DemoVariant(
        name="made to fit",
        spec="fighter-fit.toml",
        knob="n_steps",
        options=(
            *("--n-steps", "{value}", "--batch-size", "64"),
            *("--epochs", "1", "--iterations", "2", "--quiet"),
        ),
        values=(64, 512),
    ),
)
