"""A PPO in one file: settings by argparse, a vector env, storage and updates in the main module."""

import argparse

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.distributions import Normal

parser = argparse.ArgumentParser()
parser.add_argument("--num-envs", type=int, default=4)
parser.add_argument("--num-steps", type=int, default=128)
parser.add_argument("--total-timesteps", type=int, default=2560)
parser.add_argument("--num-minibatches", type=int, default=4)
parser.add_argument("--update-epochs", type=int, default=2)
parser.add_argument("--width", type=int, default=10000)
args = parser.parse_args()


class Sensors(gym.Env):
    """Many numbers a step."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (args.width,), np.float32)
    action_space = gym.spaces.Box(-1.0, 1.0, (4,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self._look(), {}

    def step(self, action):
        self.steps += 1
        return self._look(), float(np.sum(action)), False, self.steps >= 100, {}

    def _look(self):
        return self.np_random.uniform(-1, 1, args.width).astype(np.float32)


class Agent(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.critic = nn.Sequential(nn.Linear(inputs, 256), nn.Tanh(), nn.Linear(256, 1))
        self.actor = nn.Sequential(nn.Linear(inputs, 256), nn.Tanh(), nn.Linear(256, outputs))
        self.spread = nn.Parameter(torch.zeros(1, outputs))

    def act(self, seen, action=None):
        chosen = Normal(self.actor(seen), self.spread.exp())
        if action is None:
            action = chosen.sample()
        return action, chosen.log_prob(action).sum(1), chosen.entropy().sum(1), self.critic(seen)


envs = gym.vector.SyncVectorEnv([Sensors] * args.num_envs)
agent = Agent(args.width, 4)
optimizer = torch.optim.Adam(agent.parameters(), lr=3e-4)
batch_size = args.num_envs * args.num_steps
obs = torch.zeros((args.num_steps, args.num_envs, args.width))
actions = torch.zeros((args.num_steps, args.num_envs, 4))
logprobs = torch.zeros((args.num_steps, args.num_envs))
rewards = torch.zeros((args.num_steps, args.num_envs))
values = torch.zeros((args.num_steps, args.num_envs))
next_obs = torch.tensor(envs.reset(seed=1)[0])
for _ in range(args.total_timesteps // batch_size):
    for step in range(args.num_steps):
        obs[step] = next_obs
        with torch.no_grad():
            action, logprob, _, value = agent.act(next_obs)
        actions[step], logprobs[step], values[step] = action, logprob, value.flatten()
        seen, reward, _, _, _ = envs.step(action.numpy())
        rewards[step], next_obs = torch.tensor(reward), torch.tensor(seen)
    with torch.no_grad():
        advantages, last = torch.zeros_like(rewards), 0
        for step in reversed(range(args.num_steps)):
            last = rewards[step] - values[step] + 0.9 * last
            advantages[step] = last
        returns = advantages + values
    b_obs = obs.reshape(-1, args.width)
    b_actions, b_logprobs = actions.reshape(-1, 4), logprobs.reshape(-1)
    b_advantages, b_returns = advantages.reshape(-1), returns.reshape(-1)
    b_inds = np.arange(batch_size)
    for _ in range(args.update_epochs):
        np.random.shuffle(b_inds)
        for start in range(0, batch_size, batch_size // args.num_minibatches):
            mb = b_inds[start : start + batch_size // args.num_minibatches]
            _, newlogprob, entropy, newvalue = agent.act(b_obs[mb], b_actions[mb])
            ratio = (newlogprob - b_logprobs[mb]).exp()
            policy = -(b_advantages[mb] * ratio.clamp(0.8, 1.2)).mean()
            loss = policy + ((newvalue.view(-1) - b_returns[mb]) ** 2).mean() - entropy.mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
envs.close()
