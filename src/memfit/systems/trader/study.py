"""The trader's study: trials of this very program, as many side by side as fit by plan."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution

from memfit.integrations.optuna import ObjectiveFailed, Within, within
from memfit.systems.options import words_of
from memfit.systems.trader.once import WORKER
from memfit.systems.trader.settings import Settings

# What a study may choose from, up to what the command line allows.
WIDTHS = (32, 64, 128, 256, 384, 512, 768, 1024, 1536, 2048)
BATCHES = (128, 256, 512, 1024, 2048, 4096)
SPEC = "trader-fit.toml"
SCORE = r"on held-out prices: mean return (\S+) %"
# A thread of torch: its stack as far as it is used, its heap, and buffers of matrix products.
THREAD = 1 << 20


class Study:
    """Trials of a fitted training within a limit; `bounded` runs them, `study` is Optuna's."""

    def __init__(
        self,
        settings: Settings,
        *,
        limit: int,
        folder: Path,
        side_by_side: int | None = None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.study = optuna.create_study(
            direction="maximize",
            sampler=optuna.samplers.TPESampler(seed=settings.seed),
            pruner=optuna.pruners.NopPruner(),
        )
        space = space_of(settings)
        one = replace(settings, workers=0, envs=max(1, settings.workers) * settings.envs)
        known = ("lookback", "steps", "envs")
        self.bounded: Within = within(
            command(settings, space),
            limit=limit,
            jobs=side_by_side or "fit",
            space=space,
            value=SCORE,
            plan=SPEC,
            each={"workers": WORKER, "threads": THREAD},
            fixed={name: getattr(one, name) for name in known},
            folder=folder,
            say=say,
        )

    def run(self, trials: int, max_seconds: float | None = None) -> optuna.Study:
        """All trials; none is left running, however this ends."""
        self.bounded.optimize(self.study, trials, max_seconds, catch=(ObjectiveFailed,))
        return self.study


def space_of(largest: Settings) -> dict[str, BaseDistribution]:
    """What trials are of, up to the largest that each may have."""
    return {
        "width": CategoricalDistribution(_up_to(WIDTHS, largest.width)),
        "batch": CategoricalDistribution(_up_to(BATCHES, largest.batch)),
        "threads": IntDistribution(1, largest.threads),
        "workers": IntDistribution(min(1, largest.workers), largest.workers),
    }


def command(settings: Settings, space: dict[str, BaseDistribution]) -> list[str]:
    """The program of one trial, with its parameters still open."""
    chosen = {f"--{name}": f"{{{name}}}" for name in space}
    words = words_of(settings)
    told = [chosen.get(before, word) for before, word in zip(["", *words], words, strict=False)]
    prices = ["--prices", settings.prices] if settings.prices else []
    program = [sys.executable, "-m", "memfit.systems.trader", "--trials", "0", "--quiet"]
    return [*program, "--limit", "{share}", *told, *prices]


def _up_to(choices: tuple[int, ...], most: int) -> list[int]:
    """The choices up to a value, and that value itself."""
    return sorted({*(choice for choice in choices if choice < most), most})
