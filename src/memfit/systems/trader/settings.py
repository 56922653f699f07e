"""The settings of the trader system, and what makes them impossible."""

from __future__ import annotations

from dataclasses import dataclass

from memfit.errors import UsageError
from memfit.systems.options import check, option

COINS = ("BTC", "ETH", "SOL", "XRP", "ADA", "DOT", "LTC")
ACTIONS = len(COINS)
FEATURES = 9  # technical features of one coin
EPISODE = 168  # steps: a week of hours
ROWS = 12_000  # hours of the synthetic market
FEE = 0.001  # of what is bought or sold
DISCOUNT = 0.98
DECAY = 0.95


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


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One training: its networks, its rollouts, and what it runs on. Made to fit by default."""

    width: int = option(128, "of the two hidden layers of actor and critic", least=1)
    batch: int = option(512, "transitions of one gradient step", least=1)
    threads: int = option(2, "torch's threads", least=1)
    workers: int = option(2, "processes that collect; 0: the training's own process does", least=0)
    steps: int = option(4096, "transitions of one rollout, of all workers together", least=1)
    iterations: int = option(20, "rollouts, each then learned", least=1)
    epochs: int = option(4, "times that each rollout is learned", least=1)
    envs: int = option(8, "portfolios of each worker", least=1)
    lookback: int = option(1, "rows whose features are seen", least=1)
    max_episode: int = option(4 * EPISODE, "an episode ends here, said or not", least=1)
    learning_rate: float = option(1e-3, "of both optimizers", above=0, below=1)
    seed: int = option(0, "of everything that is drawn at random", least=0)
    device: str = option("cpu")
    never_done: bool = option(False, "an env that fails to say done")
    prices: str = ""  # a file; without one, the synthetic market
    rows: int = ROWS

    def __post_init__(self) -> None:
        check(self)
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
