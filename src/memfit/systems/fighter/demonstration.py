"""What `memfit demo fighter` runs: the smallest sizes at which what one more adds stands out."""

from __future__ import annotations

from memfit.model import DemoVariant

ENV = "memfit.systems.fighter.env:FighterEnv"  # what `memfit profile fighter` steps
OPTIONS = "--n-steps {value} --batch-size 64 --epochs 1 --iterations 2 --quiet"
VARIANTS = (
    DemoVariant(
        name="as described",
        spec="fighter.toml",
        knob="n_steps",
        options=f"{OPTIONS} --as-described",
        values=(64, 256),
        knobs={"batch_size": 64},
    ),
    DemoVariant(
        name="made to fit",
        spec="fighter-fit.toml",
        knob="n_steps",
        options=OPTIONS,
        values=(64, 512),
    ),
)
