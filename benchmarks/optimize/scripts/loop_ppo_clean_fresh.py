"""PPO in one file: storage of tensors, minibatches, a shared network for pixels."""

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical
from worlds import Pictures

num_envs, num_steps, num_minibatches, update_epochs = 4, 96, 4, 1
torch.manual_seed(2)
envs = gym.vector.SyncVectorEnv([lambda: Pictures(side=64)] * num_envs)


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 8, 4), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 15 * 15, 128), nn.ReLU()
        )
        self.actor, self.critic = nn.Linear(128, 4), nn.Linear(128, 1)

    def forward(self, x):
        hidden = self.body(x.permute(0, 3, 1, 2) / 255.0)
        return Categorical(logits=self.actor(hidden)), self.critic(hidden).flatten()


agent = Agent()
optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
obs = torch.zeros((num_steps, num_envs, 64, 64, 1))
actions, logprobs, rewards, dones, values = (torch.zeros((num_steps, num_envs)) for _ in range(5))
next_obs = torch.Tensor(envs.reset(seed=2)[0])
next_done = torch.zeros(num_envs)
for iteration in range(1000):
    for step in range(num_steps):
        obs[step], dones[step] = next_obs, next_done
        with torch.no_grad():
            policy, value = agent(next_obs)
            action = policy.sample()
        values[step], actions[step], logprobs[step] = value, action, policy.log_prob(action)
        seen, reward, ended, cut, _ = envs.step(action.numpy())
        rewards[step] = torch.tensor(reward)
        next_obs, next_done = torch.Tensor(seen), torch.Tensor(np.logical_or(ended, cut))
    with torch.no_grad():
        following = agent(next_obs)[1]
        returns = torch.zeros_like(rewards)
        for t in reversed(range(num_steps)):
            following = rewards[t] + 0.99 * following * (1 - dones[t])
            returns[t] = following
    b_obs, b_actions = obs.reshape(-1, 64, 64, 1), actions.reshape(-1)
    b_logprobs, b_returns = logprobs.reshape(-1), returns.reshape(-1)
    b_advantages = b_returns - values.reshape(-1)
    order = np.random.default_rng(iteration).permutation(num_steps * num_envs)
    for _ in range(update_epochs):
        for part in np.array_split(order, num_minibatches):
            policy, value = agent(b_obs[part])
            ratio = (policy.log_prob(b_actions[part]) - b_logprobs[part]).exp()
            advantage = b_advantages[part]
            clipped = torch.clamp(ratio, 0.8, 1.2)
            loss = -torch.min(ratio * advantage, clipped * advantage).mean()
            loss = loss + 0.5 * (value - b_returns[part]).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
