"""What the micro-batched PPO tells of, and what it refuses."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from stable_baselines3.common.buffers import RolloutBuffer

from memfit.dropins import MicroBatchPPO
from memfit.dropins.updates.size import UpdateBytes
from memfit.errors import Unsupported, UsageError
from tests.dropins.test_microbatch import STEPS, Dropping, trained
from tests.dropins.test_training import envs


def test_batch_norm_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    options: dict[str, Any] = {"policy_kwargs": {"features_extractor_class": Dropping}}
    trained(MicroBatchPPO, updates=2, micro_batch_size=4, **options)
    told = [r for r in caplog.records if r.name == "memfit.dropins"]
    assert [r.levelname for r in told] == ["WARNING"]
    assert "layer or group norm" in told[0].getMessage()


def test_the_chosen_size_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "memfit.dropins"):
        model, _ = trained(MicroBatchPPO, updates=2, memory_limit="1TiB")
    told = [r.getMessage() for r in caplog.records if r.name == "memfit.dropins"]
    assert len(told) == 1
    assert "micro_batch_size 8 of batch_size 8" in told[0]
    assert model.samples_at_once == 8


def test_a_limit_that_makes_it_slow_is_told_of(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    took = UpdateBytes(resident=100, to_come=0, gradients=0, samples=1, asked=1000)
    monkeypatch.setattr("memfit.dropins.updates.microbatch.measure", lambda *_, **__: took)
    model, _ = trained(MicroBatchPPO, updates=1, memory_limit=took.peak(2))
    assert model.samples_at_once == 2
    told = [r for r in caplog.records if r.name == "memfit.dropins"]
    assert [r.levelname for r in told] == ["WARNING"]
    assert "larger limit" in told[0].getMessage()


@pytest.mark.parametrize("size", [0, -1, 2.5, "4", True])
def test_a_size_that_is_none_is_refused(size: Any) -> None:
    env = envs("history", discrete=True)
    with pytest.raises(UsageError, match="give 1 or more"):
        MicroBatchPPO("MlpPolicy", env, micro_batch_size=size)
    model = MicroBatchPPO("MlpPolicy", env, device="cpu", **STEPS)
    model.micro_batch_size = size
    with pytest.raises(UsageError, match="give 1 or more"):
        model.learn(32)


@pytest.mark.parametrize("limit", [0, -5, 2.5, "much", True])
def test_a_limit_that_is_none_is_refused(limit: Any) -> None:
    with pytest.raises(UsageError, match=r"give bytes|write a number"):
        MicroBatchPPO("MlpPolicy", envs("history", discrete=True), memory_limit=limit)


def test_a_size_and_a_limit_together_are_refused() -> None:
    with pytest.raises(UsageError, match="give one of them"):
        MicroBatchPPO(
            "MlpPolicy",
            envs("history", discrete=True),
            micro_batch_size=4,
            memory_limit="1GiB",
        )


def test_a_limit_in_which_no_sample_fits_is_refused() -> None:
    with pytest.raises(UsageError, match=r"not even one sample fits 1.00 MiB.*larger limit"):
        trained(MicroBatchPPO, updates=1, memory_limit="1MiB")


def test_a_limit_while_torch_is_profiled_is_refused() -> None:
    from torch.profiler import ProfilerActivity, profile

    with (
        profile(activities=[ProfilerActivity.CPU]),
        pytest.raises(Unsupported, match="give micro_batch_size"),
    ):
        trained(MicroBatchPPO, updates=1, memory_limit="1TiB")


class Generating(RolloutBuffer):
    """A buffer with samples of its own making."""

    def get(self, batch_size: int | None = None) -> Any:
        yield from super().get(batch_size)
        yield self.swap_and_flatten(self.rewards)


def test_a_buffer_that_gathers_otherwise_is_refused() -> None:
    with pytest.raises(Unsupported, match="WindowRolloutBuffer"):
        trained(MicroBatchPPO, updates=1, micro_batch_size=3, rollout_buffer_class=Generating)
