"""TorchRL: A2C by its own Trainer, with envs in processes and a schedule of hooks."""

from dataclasses import dataclass
from typing import Any

import torch
import tyro
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.envs import ParallelEnv
from torchrl.envs.libs.gym import GymEnv
from torchrl.modules import OneHotCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import A2CLoss
from torchrl.objectives.value import GAE
from torchrl.trainers import Trainer


@dataclass
class Args:
    """Settings of the run."""

    num_envs: int = 2
    frames_per_batch: int = 256
    iterations: int = 4
    width: int = 1024


def make_env() -> GymEnv:
    """One env of a process."""
    return GymEnv("CartPole-v1")


def network(width: int, outputs: int) -> nn.Sequential:
    """Two wide layers."""
    hidden = [nn.Linear(4, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()]
    return nn.Sequential(*hidden, nn.Linear(width, outputs))


def main(args: Args) -> None:
    """Train."""
    envs = ParallelEnv(args.num_envs, make_env)
    actor = ProbabilisticActor(
        module=TensorDictModule(
            network(args.width, 2), in_keys=["observation"], out_keys=["logits"]
        ),
        in_keys=["logits"],
        spec=envs.action_spec,
        distribution_class=OneHotCategorical,
        return_log_prob=True,
    )
    critic = ValueOperator(network(args.width, 1), in_keys=["observation"])
    advantage = GAE(gamma=0.99, lmbda=0.95, value_network=critic)
    loss_module = A2CLoss(actor_network=actor, critic_network=critic)
    total = args.frames_per_batch * args.iterations
    collector = Collector(envs, actor, frames_per_batch=args.frames_per_batch, total_frames=total)
    trainer = Trainer(
        collector=collector,
        total_frames=total,
        frame_skip=1,
        optim_steps_per_batch=2,
        loss_module=loss_module,
        optimizer=torch.optim.Adam(loss_module.parameters(), 1e-3),
        progress_bar=False,
    )

    def with_advantages(batch: Any) -> Any:
        advantage(batch)
        return batch

    trainer.register_op("batch_process", with_advantages)
    trainer.register_op("process_optim_batch", lambda batch: batch.reshape(-1))
    trainer.train()


if __name__ == "__main__":
    main(tyro.cli(Args))
