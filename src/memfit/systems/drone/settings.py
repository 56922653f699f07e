"""The settings of the drone system, and what makes them impossible."""

from __future__ import annotations

from dataclasses import dataclass

from memfit.errors import UsageError
from memfit.systems.options import check, option

SENSOR_HZ = 100
CONTROL_HZ = 10
SAMPLES = SENSOR_HZ // CONTROL_HZ  # the sensor's samples in one control step
CHANNELS = 6  # three of acceleration, three of rotation
TARGETS = 4
ACTIONS = 4
EPISODE = 100  # control steps

# Types that a rollout may be stored in. A type is refused if it loses readings, not by its name.
STORAGE = ("float32", "int16", "float64", "float16", "bfloat16", "int32", "int8", "uint8")
DESCRIBED = {"storage": "float32"}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One training: how many drones, what they remember, and how they learn."""

    agents: int = option(1024, "drones, all in one process", least=1)
    iterations: int = option(10, "rollouts, each then learned", least=1)
    history: int = option(300, "samples that a drone remembers")
    every: int = option(1, "keep every how-many-th sample of the history")
    storage: str = option("int16", "what samples are stored in", metavar="float32|int16")
    minibatch: int = option(1024, "samples of one gradient step", least=1)
    epochs: int = option(2, "times that each sample is learned", least=1)
    max_minibatches: int | None = option(
        None, "at most so many an iteration: less work, same memory", least=1, type=int
    )
    act_every: int = option(1, "ask the policy only every how-many-th step", least=1)
    learning_rate: float = option(1e-3, "of both optimizers")
    first_fix: bool = option(
        False, "with --as-described: no history beside the observations, the assessments' own fix"
    )
    seed: int = option(0, "of everything that is drawn at random")
    device: str = "cpu"
    paths: int = 0  # of how many drones the flown path is kept, for a picture

    def __post_init__(self) -> None:
        check(self)
        if EPISODE % self.act_every:
            raise UsageError(
                f"--act-every {self.act_every} does not divide the {EPISODE} steps of an episode: "
                "give a divisor such as 1, 2, 5 or 10"
            )
        if self.history < SAMPLES:
            raise UsageError(
                f"--history is {self.history}, but one step alone brings {SAMPLES} samples: "
                f"give {SAMPLES} or more"
            )
        if self.every < 1 or SAMPLES % self.every or self.history % self.every:
            raise UsageError(
                f"--every {self.every} does not divide the {SAMPLES} samples of a step and the "
                f"{self.history} of the history: give 1, 2, 5 or 10"
            )
        if self.storage not in STORAGE:
            raise UsageError(f"--storage {self.storage} is not known: give int16 or float32")

    @property
    def window(self) -> int:
        """Samples in one observation."""
        return self.history // self.every

    @property
    def fresh(self) -> int:
        """Samples that one step adds to a window."""
        return SAMPLES // self.every

    @property
    def observation(self) -> int:
        """Numbers in one observation: the window and the targets."""
        return self.window * CHANNELS + TARGETS


def check_storage(name: str) -> None:
    """Refuse a type in which two readings of the 16-bit sensor would become one."""
    import torch

    readings = torch.arange(-(2**15), 2**15, dtype=torch.int32)
    kept = readings.to(getattr(torch, name)).to(torch.int32)
    lost = int((kept != readings).sum())
    if lost:
        raise UsageError(
            f"--storage {name} would change {lost:,} of the sensor's {len(readings):,} readings: "
            "give int16 or float32, which keep them all"
        )
