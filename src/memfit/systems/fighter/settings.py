"""The settings of the fighter system, and what makes them impossible."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from memfit.errors import UsageError
from memfit.systems.options import check, option

HEIGHT, WIDTH, CHANNELS = 144, 160, 3
FRAME_STACK = 4
EP_LENGTH = 8192  # steps of a rollout, and the most of an episode
BATCH_SIZE = 2048
SAVE_FREQ = EP_LENGTH * 10  # vector steps, each of n_envs timesteps
TOTAL_TIMESTEPS = 10_000_000

# What an action holds down: nothing, left, right, punch, kick, block.
ACTIONS: tuple[str | None, ...] = (None, "left", "right", "a", "b", "down")

FRAMES = {
    "colour": (HEIGHT, WIDTH, CHANNELS),
    "grey": (HEIGHT, WIDTH, 1),
    "half": (HEIGHT // 2, WIDTH // 2, 1),
}


@dataclass(frozen=True, kw_only=True)
class Game:
    """Which game is played, and how an env shows it."""

    rom: Path | None = option(None, "a Game Boy ROM of your own", type=Path, metavar="FILE")
    addresses: Path | None = option(
        None, "where its memory has health: a TOML file", type=Path, metavar="FILE"
    )
    state: Path | None = option(
        None, "PyBoy's savestate that its fights begin with", type=Path, metavar="FILE"
    )
    frames: str = option(
        "colour",
        "what is seen; grey has one channel, half a quarter of its pixels: another problem",
        known=tuple(FRAMES),
    )
    frame_skip: int = option(4, "frames of one action", least=1)
    episode_steps: int = option(
        EP_LENGTH, "after which an episode is cut off, if no match ends it before", least=1
    )
    to_the_end: bool = False  # episodes go on after a match, to the last of their steps

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One training: its game, how much of it is collected, and how it is learned."""

    game: Game = field(default_factory=Game)
    n_envs: int = option(2, "emulators, a process each", least=1)
    n_steps: int = option(EP_LENGTH, "of a rollout, an env", least=1)
    batch_size: int | None = option(
        None, f"samples of one gradient step ({BATCH_SIZE}, or all of a rollout)", least=1, type=int
    )
    micro_batch: int = option(
        64, "samples that go through the network at once; not as described", least=1
    )
    n_epochs: int = option(10, "times a sample is learned", least=1, flag="epochs")
    steps: int = option(TOTAL_TIMESTEPS, least=1)
    learning_rate: float = option(3e-4, "of Adam", above=0, below=1)
    entropy: float = option(0.0, "weight of the entropy", least=0, below=1)
    storage: str = option(
        "frames",
        "store each frame once, or every stack whole; not as described",
        known=("frames", "stacks"),
    )
    eval_every: int | None = option(
        None, "evaluate, on an env of its own", least=1, type=int, metavar="ROLLOUTS"
    )
    output: Path | None = option(
        None, "for checkpoints and the trained policy", type=Path, metavar="DIR"
    )
    save_every: int = option(SAVE_FREQ, "vector steps to a checkpoint", least=1)
    seed: int = option(0, "of everything that is drawn at random", least=0, below=2**31)
    device: str = "cpu"

    def __post_init__(self) -> None:
        check(self)
        if self.rollout < 2:
            raise UsageError("one step of one env is no rollout: give --n-steps 2 or more")
        if self.batch_size is not None and self.batch_size > self.rollout:
            raise UsageError(
                f"--batch-size {self.batch_size} is more than the {self.n_envs} x {self.n_steps} "
                f"samples of a rollout: give {self.rollout} or less"
            )

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
