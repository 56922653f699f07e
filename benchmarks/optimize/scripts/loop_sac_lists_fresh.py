"""An actor-critic of one file whose replay is a deque of transitions."""

import random
from collections import deque

import numpy as np
import torch
from torch import nn
from worlds import Readings

random.seed(0)
torch.manual_seed(0)
env = Readings(300, discrete=False)
memory = deque(maxlen=50_000)
actor = nn.Sequential(nn.Linear(300, 128), nn.ReLU(), nn.Linear(128, 2), nn.Tanh())
critic = nn.Sequential(nn.Linear(302, 128), nn.ReLU(), nn.Linear(128, 1))
actor_optimizer = torch.optim.Adam(actor.parameters(), lr=1e-4)
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
observation, _ = env.reset(seed=0)
for step in range(1_000_000):
    with torch.no_grad():
        action = actor(torch.from_numpy(observation)).numpy()
    action = np.clip(action + np.random.normal(0, 0.1, 2), -1, 1).astype(np.float32)
    following, reward, ended, cut, _ = env.step(action)
    memory.append((observation, action, reward, following, ended))
    observation = env.reset()[0] if ended or cut else following
    if len(memory) < 500 or step % 10:
        continue
    batch = random.sample(memory, 64)
    states, actions, rewards, nexts, ends = (
        torch.tensor(np.stack(x)) for x in zip(*batch, strict=False)
    )
    with torch.no_grad():
        future = critic(torch.cat([nexts, actor(nexts)], 1)).flatten()
        wanted = rewards.float() + 0.98 * future * (~ends)
    loss = (critic(torch.cat([states, actions], 1)).flatten() - wanted).pow(2).mean()
    critic_optimizer.zero_grad()
    loss.backward()
    critic_optimizer.step()
    actor_loss = -critic(torch.cat([states, actor(states)], 1)).mean()
    actor_optimizer.zero_grad()
    actor_loss.backward()
    actor_optimizer.step()
