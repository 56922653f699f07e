"""TorchRL: PPO with a collector, a replay buffer for minibatches and a loss module."""

import argparse

import torch
from tensordict.nn import TensorDictModule
from tensordict.nn.distributions import NormalParamExtractor
from torch import nn
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, ReplayBuffer
from torchrl.data.replay_buffers import SamplerWithoutReplacement
from torchrl.envs.libs.gym import GymEnv
from torchrl.modules import ProbabilisticActor, TanhNormal, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames-per-batch", type=int, default=1000)
    parser.add_argument("--iterations", type=int, default=4)
    parser.add_argument("--sub-batch-size", type=int, default=250)
    parser.add_argument("--num-epochs", type=int, default=3)
    parser.add_argument("--num-cells", type=int, default=1024)
    return parser.parse_args()


def main() -> None:
    """Train."""
    args = parse_args()
    env = GymEnv("Pendulum-v1")
    cells = args.num_cells
    actor_net = nn.Sequential(
        nn.Linear(3, cells), nn.Tanh(), nn.Linear(cells, cells), nn.Tanh(),
        nn.Linear(cells, 2), NormalParamExtractor(),
    )  # fmt: skip
    value_net = nn.Sequential(
        nn.Linear(3, cells), nn.Tanh(), nn.Linear(cells, cells), nn.Tanh(), nn.Linear(cells, 1)
    )
    policy = ProbabilisticActor(
        module=TensorDictModule(actor_net, in_keys=["observation"], out_keys=["loc", "scale"]),
        spec=env.action_spec,
        in_keys=["loc", "scale"],
        distribution_class=TanhNormal,
        distribution_kwargs={"low": -2.0, "high": 2.0},
        return_log_prob=True,
    )
    value = ValueOperator(module=value_net, in_keys=["observation"])
    collector = Collector(
        env,
        policy,
        frames_per_batch=args.frames_per_batch,
        total_frames=args.frames_per_batch * args.iterations,
    )
    buffer = ReplayBuffer(
        storage=LazyTensorStorage(max_size=args.frames_per_batch),
        sampler=SamplerWithoutReplacement(),
    )
    advantage = GAE(gamma=0.99, lmbda=0.95, value_network=value, average_gae=True)
    loss_module = ClipPPOLoss(actor_network=policy, critic_network=value, clip_epsilon=0.2)
    optimizer = torch.optim.Adam(loss_module.parameters(), 3e-4)
    for number, data in enumerate(collector):
        for _ in range(args.num_epochs):
            advantage(data)
            buffer.extend(data.reshape(-1))
            for _ in range(args.frames_per_batch // args.sub_batch_size):
                losses = loss_module(buffer.sample(args.sub_batch_size))
                names = ("loss_objective", "loss_critic", "loss_entropy")
                loss = torch.stack([losses[name].sum() for name in names]).sum()
                loss.backward()
                nn.utils.clip_grad_norm_(loss_module.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
        print(f"batch {number}: reward {data['next', 'reward'].mean().item():.3f}")
    collector.shutdown()


if __name__ == "__main__":
    main()
