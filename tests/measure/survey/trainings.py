"""Driven trainings made up for the survey: what they allocate is known to the byte."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from memfit.libraries.driven import DrivenTraining
from memfit.model import RunSpec, UpdateSpec
from memfit.model.training import Beside, Mark, Work

FEATURES = 10_000
SAMPLE_BYTES = 4 * FEATURES  # of float32
FIXED_BYTES = 400_000


def spec_of(*, batch_size: int = 256, **update: Any) -> RunSpec:
    """A run of one minibatch, unless `update` says otherwise."""
    said = {"batch": "batch_size", "minibatch": "batch_size", **update}
    return RunSpec(
        library="made up",
        version="1",
        algorithm="",
        policy="",
        knobs={"batch_size": batch_size, "steps": 3},
        on_policy=False,
        update=UpdateSpec(**said),
        scale={"batch_size": batch_size},
    )


class Torch(DrivenTraining):
    """Updates have two tensors of each sample alive at once, beside one of `FIXED_BYTES`.

    Its forward pass saves one tensor of each sample, a step of its rollout keeps one. The first
    update makes `first_use` bytes that stay. Updates of more than `most` samples fail.
    """

    def __init__(self, spec: RunSpec, *, first_use: int = 0, most: int = 10**9) -> None:
        import torch

        self.spec = spec
        self.first_use = first_use
        self.most = most
        self.traceable = True
        self.padded = 1.0
        self.odd_bytes = 0  # that updates of 368 samples or more hold beside
        self.whole = 1  # updates take whole multiples of so many samples
        self.stays: Any = None
        self.batches: list[int] = []
        self.weight = torch.nn.Parameter(torch.ones(FEATURES))

    def facts(self) -> RunSpec:
        return self.spec

    def update(self, work: Work, mark: Mark) -> None:
        import torch

        batch = self.samples_of(work)
        self.batches.append(batch)
        if batch > self.most:
            raise RuntimeError("no update of this size")
        if self.stays is None:
            self.stays = torch.ones(self.first_use // 4)
        fixed = torch.ones(FIXED_BYTES // 4)
        odd = torch.ones(self.odd_bytes // 4) if batch >= 368 else None
        for _ in range(work.minibatches):
            torch.ones(batch, FEATURES).clone()
        del fixed, odd

    def samples_of(self, work: Work) -> int:
        return -(-work.batch // self.whole) * self.whole

    def rollout_step(self, samples: int) -> object:
        import torch

        return torch.ones(samples, FEATURES)

    def forward(self, samples: int) -> object:
        import torch

        if not self.traceable:
            raise RuntimeError("only real data can answer this")
        return torch.ones(samples, FEATURES) * self.weight

    def padding(self, recorded: int, samples: int) -> float:
        return self.padded

    def tensors(self) -> Iterable[Any]:
        return [self.weight]


class Noted(DrivenTraining):
    """Does nothing but note what it is asked to do."""

    def __init__(self, spec: RunSpec, beside: Beside | None = None) -> None:
        self.spec = spec
        self.around = beside or Beside()
        self.done: list[str] = []
        self.works: list[Work] = []

    def facts(self) -> RunSpec:
        return self.spec

    def beside(self) -> Beside:
        return self.around

    def prepare(self) -> None:
        self.done.append("prepare")

    def collect(self, work: Work) -> None:
        self.done.append("collect")

    def update(self, work: Work, mark: Mark) -> None:
        self.done.append("update")
        self.works.append(work)

    def forward(self, samples: int) -> object:
        return None

    def tensors(self) -> Iterable[Any]:
        return []


class ScriptedMeter:
    """A meter whose peaks are those of a list, one after the other."""

    def __init__(self, *peaks: int) -> None:
        self.peaks = list(peaks)
        self.started = 0

    def start(self) -> None:
        self.started += 1

    def now(self) -> int:
        return 10

    def peak(self) -> int:
        return self.peaks.pop(0) if self.peaks else 0
