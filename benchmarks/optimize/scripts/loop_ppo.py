"""A PPO of its own in one file, with a large minibatch."""

import gymnasium
import torch
from torch import nn
from worlds import Readings

num_envs = 8
num_steps = 256
minibatch_size = 1024
total_timesteps = 200_000

torch.manual_seed(1)
envs = gymnasium.vector.SyncVectorEnv([lambda: Readings(256) for _ in range(num_envs)])
body = nn.Sequential(nn.Linear(256, 1024), nn.Tanh(), nn.Linear(1024, 1024), nn.Tanh())
actor, critic = nn.Linear(1024, 3), nn.Linear(1024, 1)
params = [*body.parameters(), *actor.parameters(), *critic.parameters()]
optimizer = torch.optim.Adam(params, lr=3e-4)
observations = torch.zeros((num_steps, num_envs, 256))
actions = torch.zeros((num_steps, num_envs), dtype=torch.long)
rewards = torch.zeros((num_steps, num_envs))
seen, _ = envs.reset(seed=1)
for _ in range(total_timesteps // (num_envs * num_steps)):
    for step in range(num_steps):
        observations[step] = torch.as_tensor(seen)
        with torch.no_grad():
            logits = actor(body(observations[step]))
        actions[step] = torch.distributions.Categorical(logits=logits).sample()
        seen, reward, _, _, _ = envs.step(actions[step].numpy())
        rewards[step] = torch.as_tensor(reward)
    flat, chosen, gained = observations.flatten(0, 1), actions.flatten(), rewards.flatten()
    for _ in range(2):
        order = torch.randperm(num_steps * num_envs)
        for start in range(0, num_steps * num_envs, minibatch_size):
            at = order[start : start + minibatch_size]
            features = body(flat[at])
            taken = torch.distributions.Categorical(logits=actor(features)).log_prob(chosen[at])
            values = critic(features).squeeze(-1)
            loss = (
                -(taken * (gained[at] - values.detach())).mean()
                + ((values - gained[at]) ** 2).mean()
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
