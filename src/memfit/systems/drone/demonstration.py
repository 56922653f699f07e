"""What `memfit demo drone` runs: the smallest sizes at which what one more adds stands out."""

from __future__ import annotations

from memfit.model import DemoVariant

ENV = "memfit.systems.drone.gym_env:DroneEnv"  # what `memfit profile drone` steps
VARIANTS = (
    DemoVariant(
        name="as described",
        spec="drone.toml",
        knob="agents",
        options="--agents {value} --as-described --iterations 2",
        values=(20, 60),
    ),
    # What the second of the two assessments is of: its own fix is made, 7,200 bytes an agent less.
    DemoVariant(
        name="after its first fix",
        spec="drone-first-fix.toml",
        knob="agents",
        options="--agents {value} --as-described --first-fix --iterations 2",
        values=(20, 60),
    ),
    DemoVariant(
        name="made to fit",
        spec="drone-fit.toml",
        knob="agents",
        options="--agents {value} --iterations 2 --act-every 10 --max-minibatches 20",
        values=(2_000, 20_000),
    ),
)
