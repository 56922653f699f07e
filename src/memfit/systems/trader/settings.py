"""The settings of the trader system, and what makes them impossible."""

from __future__ import annotations

from dataclasses import dataclass

from memfit.errors import UsageError

COINS = ("BTC", "ETH", "SOL", "XRP", "ADA", "DOT", "LTC")
ACTIONS = len(COINS)
FEATURES = 9  # technical features of one coin
EPISODE = 168  # steps: a week of hours
ROWS = 12_000  # hours of the synthetic market
FEE = 0.001  # of what is bought or sold
DISCOUNT = 0.98
DECAY = 0.95


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One training: its networks, its rollouts, and what it runs on. Made to fit by default."""

    width: int = 128
    batch: int = 512
    threads: int = 2
    workers: int = 2  # processes that collect; 0 collects in the training's own process
    steps: int = 4096  # transitions of one rollout, of all workers together
    iterations: int = 20
    epochs: int = 4
    envs: int = 8  # portfolios that each worker holds
    lookback: int = 1
    max_episode: int = 4 * EPISODE  # an episode that has not said done by then is ended
    learning_rate: float = 1e-3
    seed: int = 0
    device: str = "cpu"
    never_done: bool = False
    prices: str = ""  # a file; without one, the synthetic market
    rows: int = ROWS

    def __post_init__(self) -> None:
        at_least_one = (
            ("width", self.width),
            ("batch", self.batch),
            ("threads", self.threads),
            ("steps", self.steps),
            ("iterations", self.iterations),
            ("epochs", self.epochs),
            ("envs", self.envs),
            ("lookback", self.lookback),
            ("max-episode", self.max_episode),
        )
        for name, value in at_least_one:
            if value < 1:
                raise UsageError(f"--{name} is {value}: give 1 or more")
        if self.workers < 0:
            raise UsageError(f"--workers is {self.workers}: give 0 or more")
        if not 0 < self.learning_rate < 1:
            raise UsageError(
                f"--learning-rate is {self.learning_rate}: give a number between 0 and 1"
            )
        if self.seed < 0:
            raise UsageError(f"--seed is {self.seed}: give 0 or more")
        if self.steps < self.portfolios:
            raise UsageError(
                f"--steps {self.steps} gives the {self.portfolios} portfolios of all workers no "
                f"step each: give {self.portfolios} or more, or fewer --workers or --envs"
            )

    @property
    def portfolios(self) -> int:
        """Portfolios of all workers together."""
        return max(1, self.workers) * self.envs

    @property
    def horizon(self) -> int:
        """Steps of each portfolio in one rollout."""
        return self.steps // self.portfolios

    @property
    def state(self) -> int:
        """Numbers in one state: cash, holdings, and the features of the last rows."""
        return 1 + ACTIONS + ACTIONS * FEATURES * self.lookback


# What the assessment describes; its one env is one portfolio a worker.
DESCRIBED = {
    "width": 768,
    "batch": 4096,
    "threads": 12,
    "workers": 3,
    "epochs": 16,
    "iterations": 4,
    "envs": 1,
}
