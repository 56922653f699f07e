"""A DQN of its own, whose replay is a numpy array, and no seed."""

import random

import numpy
import torch
from torch import nn
from worlds import Readings

buffer_size = 20_000
batch_size = 2048
env = Readings(512)
network = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 3))
optimizer = torch.optim.Adam(network.parameters())
observations = numpy.zeros((buffer_size, 512), numpy.float32)
actions = numpy.zeros(buffer_size, numpy.int64)
rewards = numpy.zeros(buffer_size, numpy.float32)
seen, _ = env.reset()
for step in range(60_000):
    action = random.randrange(3)
    observations[step % buffer_size] = seen
    seen, reward, terminated, truncated, _ = env.step(action)
    actions[step % buffer_size], rewards[step % buffer_size] = action, reward
    if terminated or truncated:
        seen, _ = env.reset()
    if step > 500 and step % 4 == 0:
        at = numpy.random.randint(0, min(step, buffer_size), batch_size)
        values = network(torch.as_tensor(observations[at]))
        taken = values.gather(1, torch.as_tensor(actions[at])[:, None]).squeeze(1)
        loss = ((taken - torch.as_tensor(rewards[at])) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
