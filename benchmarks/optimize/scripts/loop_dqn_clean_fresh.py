"""DQN in one file with the replay buffer of stable-baselines3."""

import random

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3.common.buffers import ReplayBuffer
from torch import nn, optim
from torch.nn import functional
from worlds import Readings

seed, total_timesteps, buffer_size = 1, 50_000, 20_000
learning_starts, train_frequency, batch_size, gamma = 300, 8, 64, 0.99
random.seed(seed)
np.random.seed(seed)
torch.manual_seed(seed)
envs = gym.vector.SyncVectorEnv([lambda: Readings(800)])


class QNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.network = nn.Sequential(nn.Linear(800, 120), nn.ReLU(), nn.Linear(120, 3))

    def forward(self, x):
        return self.network(x)


q_network, target = QNetwork(), QNetwork()
target.load_state_dict(q_network.state_dict())
optimizer = optim.Adam(q_network.parameters(), lr=2.5e-4)
rb = ReplayBuffer(
    buffer_size,
    envs.single_observation_space,
    envs.single_action_space,
    "cpu",
    handle_timeout_termination=False,
)
obs, _ = envs.reset(seed=seed)
for global_step in range(total_timesteps):
    epsilon = max(0.05, 1 - global_step / 10_000)
    if random.random() < epsilon:
        actions = np.array([envs.single_action_space.sample()])
    else:
        actions = torch.argmax(q_network(torch.Tensor(obs)), dim=1).numpy()
    next_obs, rewards, terminations, truncations, infos = envs.step(actions)
    rb.add(obs, next_obs, actions, rewards, terminations, infos)
    obs = next_obs
    if global_step > learning_starts and global_step % train_frequency == 0:
        data = rb.sample(batch_size)
        with torch.no_grad():
            best, _ = target(data.next_observations).max(dim=1)
            td_target = data.rewards.flatten() + gamma * best * (1 - data.dones.flatten())
        old = q_network(data.observations).gather(1, data.actions).squeeze()
        loss = functional.mse_loss(td_target, old)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if global_step % 500 == 0:
            target.load_state_dict(q_network.state_dict())
