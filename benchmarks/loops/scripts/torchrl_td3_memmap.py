"""TorchRL: TD3 on an env of tensors, with a replay that is mapped from files."""

import argparse
import tempfile
from typing import Any

import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule, TensorDictSequential
from torch import nn
from torchrl.collectors import Collector
from torchrl.data import Bounded, Composite, LazyMemmapStorage, TensorDictReplayBuffer, Unbounded
from torchrl.envs import EnvBase
from torchrl.modules import AdditiveGaussianModule, TanhModule, ValueOperator
from torchrl.objectives import SoftUpdate, TD3Loss


class Swarm(EnvBase):
    """Many points on lines that are pushed at once, in several envs side by side."""

    def __init__(self, num_envs: int, points: int) -> None:
        super().__init__(batch_size=[num_envs])
        self.observation_spec = Composite(
            observation=Unbounded((num_envs, points)), shape=(num_envs,)
        )
        self.action_spec = Bounded(-1.0, 1.0, (num_envs, 6))
        self.reward_spec = Unbounded((num_envs, 1))
        self.points = points

    def _reset(self, tensordict: Any, **kwargs: Any) -> Any:
        seen = torch.randn(*self.batch_size, self.points)
        return TensorDict({"observation": seen}, self.batch_size)

    def _step(self, tensordict: Any) -> Any:
        seen = 0.99 * tensordict["observation"]
        seen[:, :6] += 0.1 * tensordict["action"]
        reward = -seen.abs().mean(-1, keepdim=True)
        done = torch.rand(*self.batch_size, 1) < 0.01
        moved = {"observation": seen, "reward": reward, "done": done, "terminated": done.clone()}
        return TensorDict(moved, self.batch_size)

    def _set_seed(self, seed: int | None) -> None:
        torch.manual_seed(seed or 0)


class Critic(nn.Module):
    """The value of a pair of observation and action."""

    def __init__(self, points: int) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(points + 6, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, observation: torch.Tensor, action: torch.Tensor) -> Any:
        return self.net(torch.cat([observation, action], -1))


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--num-envs", type=int, default=16)
parser.add_argument("--points", type=int, default=1200)
parser.add_argument("--buffer-size", type=int, default=30_000)
parser.add_argument("--batch-size", type=int, default=256)
parser.add_argument("--total-frames", type=int, default=16_000)

if __name__ == "__main__":
    args = parser.parse_args()
    env = Swarm(args.num_envs, args.points)
    network = nn.Sequential(nn.Linear(args.points, 128), nn.ReLU(), nn.Linear(128, 6))
    actor = TensorDictSequential(
        TensorDictModule(network, in_keys=["observation"], out_keys=["action"]),
        TanhModule(in_keys=["action"], spec=env.action_spec_unbatched),
    )
    critic = ValueOperator(Critic(args.points), in_keys=["observation", "action"])
    loss_module = TD3Loss(actor, critic, bounds=(-1.0, 1.0))
    loss_module.make_value_estimator(gamma=0.99)
    target = SoftUpdate(loss_module, eps=0.99)
    explore = AdditiveGaussianModule(env.action_spec_unbatched, sigma_init=0.3, sigma_end=0.1)
    with tempfile.TemporaryDirectory() as folder:
        rb = TensorDictReplayBuffer(
            storage=LazyMemmapStorage(args.buffer_size, scratch_dir=folder),
            batch_size=args.batch_size,
        )
        collector = Collector(
            env,
            TensorDictSequential(actor, explore),
            frames_per_batch=50 * args.num_envs,
            total_frames=args.total_frames,
        )
        q_optim = torch.optim.Adam(loss_module.qvalue_network_params.flatten_keys().values(), 1e-3)
        pi_optim = torch.optim.Adam(loss_module.actor_network_params.flatten_keys().values(), 1e-3)
        for data in collector:
            rb.extend(data.reshape(-1))
            for _ in range(2):
                losses = loss_module(rb.sample())
                (losses["loss_qvalue"] + losses["loss_actor"]).backward()
                for optimizer in (q_optim, pi_optim):
                    optimizer.step()
                    optimizer.zero_grad()
                target.step()
        print(f"replay: {len(rb):,} transitions")
        collector.shutdown()
