"""The settings of the fighter system, and what makes them impossible."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from memfit.errors import UsageError

HEIGHT, WIDTH, CHANNELS = 144, 160, 3
FRAME_STACK = 4
EP_LENGTH = 8192  # steps of a rollout, and the most of an episode
BATCH_SIZE = 2048
SAVE_FREQ = EP_LENGTH * 10  # vector steps, each of n_envs timesteps
TOTAL_TIMESTEPS = 10_000_000

# What an action holds down.
ACTIONS: tuple[str | None, ...] = (None, "left", "right", "a", "b", "down")
ACTION_NAMES = ("nothing", "left", "right", "punch", "kick", "block")

FRAMES = {
    "colour": (HEIGHT, WIDTH, CHANNELS),
    "grey": (HEIGHT, WIDTH, 1),
    "half": (HEIGHT // 2, WIDTH // 2, 1),
}


@dataclass(frozen=True, kw_only=True)
class Game:
    """Which game is played, and how an env shows it."""

    rom: Path | None = None  # without one, the game that comes with memfit
    addresses: Path | None = None
    state: Path | None = None  # a savestate of the emulator that episodes begin with
    frames: str = "colour"
    frame_skip: int = 4
    episode_steps: int = EP_LENGTH
    to_the_end: bool = False  # episodes go on after a match, to the last of their steps

    def __post_init__(self) -> None:
        if self.frames not in FRAMES:
            raise UsageError(f"--frames {self.frames} is not known: give {', '.join(FRAMES)}")
        at_least_one("frame-skip", self.frame_skip)
        at_least_one("episode-steps", self.episode_steps)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One training: its game, how much of it is collected, and how it is learned."""

    game: Game = field(default_factory=Game)
    n_envs: int = 2
    n_steps: int = EP_LENGTH
    batch_size: int | None = None  # without one, BATCH_SIZE or all of a rollout
    micro_batch: int = 64  # samples that go through the network at once, made to fit
    n_epochs: int = 10
    steps: int = TOTAL_TIMESTEPS
    learning_rate: float = 3e-4
    entropy: float = 0.0
    seed: int = 0
    device: str = "cpu"
    storage: str = "frames"  # each frame once, or "stacks" as the library does
    output: Path | None = None
    save_every: int = SAVE_FREQ
    eval_every: int | None = None  # rollouts

    def __post_init__(self) -> None:
        at_least_one("n-envs", self.n_envs)
        at_least_one("n-steps", self.n_steps)
        at_least_one("micro-batch", self.micro_batch)
        at_least_one("epochs", self.n_epochs)
        at_least_one("steps", self.steps)
        at_least_one("save-every", self.save_every)
        at_least_one("batch-size", 1 if self.batch_size is None else self.batch_size)
        at_least_one("eval-every", 1 if self.eval_every is None else self.eval_every)
        if self.rollout < 2:
            raise UsageError("one step of one env is no rollout: give --n-steps 2 or more")
        if self.batch_size is not None and self.batch_size > self.rollout:
            raise UsageError(
                f"--batch-size {self.batch_size} is more than the {self.n_envs} x {self.n_steps} "
                f"samples of a rollout: give {self.rollout} or less"
            )
        if not 0 < self.learning_rate < 1:
            raise UsageError(
                f"--learning-rate is {self.learning_rate}: give one above 0 and below 1"
            )
        if not 0 <= self.entropy < 1:
            raise UsageError(f"--entropy is {self.entropy}: give 0 or more and below 1")
        if not 0 <= self.seed < 2**31:
            raise UsageError(f"--seed is {self.seed}: give 0 to {2**31 - 1}")
        if self.storage not in ("frames", "stacks"):
            raise UsageError(f"--storage {self.storage} is not known: give frames or stacks")

    @property
    def rollout(self) -> int:
        """Samples that one update learns from."""
        return self.n_envs * self.n_steps

    @property
    def minibatch(self) -> int:
        """Samples of one gradient step."""
        return min(BATCH_SIZE, self.rollout) if self.batch_size is None else self.batch_size

    @property
    def iterations(self) -> int:
        """Rollouts, each then learned: as many as the steps need."""
        return -(-self.steps // self.rollout)


def at_least_one(name: str, value: int) -> None:
    """Refuse a number below 1."""
    if value < 1:
        raise UsageError(f"--{name} is {value}: give 1 or more")
