"""What `memfit demo trader` runs: the smallest sizes at which what one more adds stands out."""

from __future__ import annotations

from memfit.model import DemoVariant

ENV = "memfit.systems.trader.env:TraderEnv"  # what `memfit profile trader` steps
OPTIONS = "--steps {value} --trials 0 --workers 0 --iterations 2 --quiet"
VARIANTS = (
    DemoVariant(
        name="as described",
        spec="trader.toml",
        knob="steps",
        options=f"{OPTIONS} --epochs 2 --as-described",
        values=(4_096, 16_384),
    ),
    DemoVariant(
        name="made to fit",
        spec="trader-fit.toml",
        knob="steps",
        options=f"{OPTIONS} --epochs 1",
        values=(4_096, 65_536),
    ),
)
