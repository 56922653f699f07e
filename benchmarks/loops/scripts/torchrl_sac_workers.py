"""TorchRL: SAC over a replay of tensors that two processes fill through a collector."""

import argparse
import functools
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from tensordict.nn import TensorDictModule
from tensordict.nn.distributions import NormalParamExtractor
from torch import nn
from torchrl.collectors import MultiSyncCollector
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.envs.libs.gym import GymWrapper
from torchrl.modules import ProbabilisticActor, TanhNormal, ValueOperator
from torchrl.objectives import SACLoss, SoftUpdate


class Pipes(gym.Env[Any, Any]):
    """The pressure along many pipes, to be levelled by four valves."""

    def __init__(self, sensors: int) -> None:
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (sensors,), np.float32)
        self.action_space = gym.spaces.Box(-1, 1, (4,), np.float32)
        self.pressure = np.zeros(sensors, np.float32)
        self.steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.pressure = self.np_random.normal(size=self.pressure.shape).astype(np.float32)
        self.steps = 0
        return self.pressure.copy(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.pressure[:4] += action
        self.pressure = np.roll(self.pressure, 4) * np.float32(0.99)
        self.steps += 1
        reward = -float(np.abs(self.pressure).mean())
        return self.pressure.copy(), reward, False, self.steps >= 100, {}


class Critic(nn.Module):
    """The value of a pair of observation and action."""

    def __init__(self, sensors: int, width: int) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(sensors + 4, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, observation: torch.Tensor, action: torch.Tensor) -> Any:
        return self.net(torch.cat([observation, action], -1))


def make_env(sensors: int) -> GymWrapper:
    """One env of a worker."""
    return GymWrapper(Pipes(sensors))


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sensors", type=int, default=2000)
    parser.add_argument("--buffer-size", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--frames-per-batch", type=int, default=400)
    parser.add_argument("--total-frames", type=int, default=3200)
    parser.add_argument("--width", type=int, default=128)
    args = parser.parse_args()
    actor_net = nn.Sequential(
        nn.Linear(args.sensors, args.width), nn.ReLU(), nn.Linear(args.width, 8),
        NormalParamExtractor(),
    )  # fmt: skip
    env = make_env(args.sensors)
    actor = ProbabilisticActor(
        module=TensorDictModule(actor_net, in_keys=["observation"], out_keys=["loc", "scale"]),
        spec=env.action_spec,
        in_keys=["loc", "scale"],
        distribution_class=TanhNormal,
    )
    critic = ValueOperator(Critic(args.sensors, args.width), in_keys=["observation", "action"])
    loss_module = SACLoss(actor_network=actor, qvalue_network=critic, num_qvalue_nets=2)
    loss_module.make_value_estimator(gamma=0.99)
    target = SoftUpdate(loss_module, eps=0.995)
    buffer = TensorDictReplayBuffer(
        storage=LazyTensorStorage(args.buffer_size), batch_size=args.batch_size
    )
    collector = MultiSyncCollector(
        [functools.partial(make_env, args.sensors)] * 2,
        actor,
        frames_per_batch=args.frames_per_batch,
        total_frames=args.total_frames,
        cat_results="stack",
    )
    optimizer = torch.optim.Adam(loss_module.parameters(), 3e-4)
    for number, data in enumerate(collector):
        buffer.extend(data.reshape(-1))
        for _ in range(4):
            losses = loss_module(buffer.sample())
            loss = losses["loss_actor"] + losses["loss_qvalue"] + losses["loss_alpha"]
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            target.step()
        collector.update_policy_weights_()
        print(f"batch {number}: reward {data['next', 'reward'].mean().item():.3f}")
    collector.shutdown()


if __name__ == "__main__":
    main()
