"""A value network trained on CartPole, with the leak that most people meet once.

`losses.append(loss)` keeps the loss with its whole graph: everything that its backward pass needed.
"""

import argparse
import time

import gymnasium as gym
import numpy as np
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=float, default=30)
args = parser.parse_args()

env = gym.make("CartPole-v1")
value = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(value.parameters(), lr=1e-3)
losses = []

end = time.monotonic() + args.seconds
while time.monotonic() < end:
    observations, rewards, ended = [env.reset()[0]], [], False
    while not ended:
        observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        observations.append(observation)
        rewards.append(float(reward))
        ended = terminated or truncated
    returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
    states = torch.from_numpy(np.stack(observations[:-1]))
    loss = (value(states).squeeze(-1) - returns).pow(2).mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
    losses.append(loss)
print(f"{len(losses)} episodes")
