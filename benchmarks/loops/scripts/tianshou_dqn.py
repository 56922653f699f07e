"""Tianshou 2: DQN over a vector of envs with a vector replay buffer."""

import argparse

import gymnasium as gym
from tianshou.algorithm import DQN
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--training-num", type=int, default=8)
parser.add_argument("--buffer-size", type=int, default=200_000)
parser.add_argument("--batch-size", type=int, default=512)
parser.add_argument("--hidden", type=int, default=512)
parser.add_argument("--epochs", type=int, default=4)

if __name__ == "__main__":
    args = parser.parse_args()
    env = gym.make("Acrobot-v1")
    train_envs = DummyVectorEnv([lambda: gym.make("Acrobot-v1") for _ in range(args.training_num)])
    shape = env.observation_space.shape
    net = Net(state_shape=shape, action_shape=3, hidden_sizes=[args.hidden] * 2)
    policy = DiscreteQLearningPolicy(
        model=net, action_space=env.action_space, eps_training=0.1, eps_inference=0.05
    )
    algorithm = DQN(
        policy=policy,
        optim=AdamOptimizerFactory(lr=1e-3),
        n_step_return_horizon=3,
        target_update_freq=320,
    )
    buffer = VectorReplayBuffer(args.buffer_size, args.training_num)
    collector = Collector(algorithm, train_envs, buffer, exploration_noise=True)
    collector.reset()
    collector.collect(n_step=args.batch_size * 2)
    result = algorithm.run_training(
        OffPolicyTrainerParams(
            training_collector=collector,
            max_epochs=args.epochs,
            epoch_num_steps=400,
            collection_step_num_env_steps=80,
            update_step_num_gradient_steps_per_sample=0.1,
            batch_size=args.batch_size,
            show_progress=False,
        )
    )
    print(result)
