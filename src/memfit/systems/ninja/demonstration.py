"""What `memfit demo ninja` runs: the smallest sizes at which what one more adds stands out."""

from __future__ import annotations

from memfit.model import DemoVariant

ENV = "memfit.systems.ninja.env:NinjaEnv"  # what `memfit profile ninja` steps
VARIANTS = (
    DemoVariant(
        name="as described",
        spec="ninja.toml",
        knob="n_envs",
        options="--n-envs {value} --as-described --steps 1024 --epochs 1 --quiet",
        values=(2, 8),
    ),
    DemoVariant(
        name="made to fit",
        spec="ninja-fit.toml",
        knob="n_envs",
        # Two rollouts of the larger one: malloc keeps what the first update has freed.
        options="--n-envs {value} --steps 4096 --epochs 1 --quiet",
        values=(8, 32),
    ),
)
