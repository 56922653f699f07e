"""PPO in one file, with a loop of its own: nothing but torch and Gymnasium."""

import argparse

import gymnasium as gym
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--num-envs", type=int, default=8)
parser.add_argument("--num-steps", type=int, default=256)
parser.add_argument("--minibatch", type=int, default=256)
parser.add_argument("--iterations", type=int, default=4)
args = parser.parse_args()

envs = gym.vector.SyncVectorEnv([lambda: gym.make("CartPole-v1") for _ in range(args.num_envs)])
size = envs.single_observation_space.shape[0]
actor = nn.Sequential(nn.Linear(size, 64), nn.Tanh(), nn.Linear(64, 2))
critic = nn.Sequential(nn.Linear(size, 64), nn.Tanh(), nn.Linear(64, 1))
parameters = [*actor.parameters(), *critic.parameters()]
optimizer = torch.optim.Adam(parameters, lr=3e-4)

obs = torch.zeros(args.num_steps, args.num_envs, size)
actions = torch.zeros(args.num_steps, args.num_envs, dtype=torch.long)
logprobs = torch.zeros(args.num_steps, args.num_envs)
rewards = torch.zeros(args.num_steps, args.num_envs)
values = torch.zeros(args.num_steps + 1, args.num_envs)
alive = torch.zeros(args.num_steps, args.num_envs)

observation, _ = envs.reset(seed=0)
for iteration in range(args.iterations):
    for step in range(args.num_steps):
        obs[step] = torch.as_tensor(observation)
        with torch.no_grad():
            choice = torch.distributions.Categorical(logits=actor(obs[step]))
            actions[step] = choice.sample()
            logprobs[step] = choice.log_prob(actions[step])
            values[step] = critic(obs[step]).squeeze(-1)
        observation, reward, terminated, truncated, _ = envs.step(actions[step].numpy())
        rewards[step] = torch.as_tensor(reward)
        alive[step] = 1 - torch.as_tensor(terminated | truncated).float()
    with torch.no_grad():
        values[-1] = critic(torch.as_tensor(observation)).squeeze(-1)
        advantages = torch.zeros_like(rewards)
        later = torch.zeros(args.num_envs)
        for step in reversed(range(args.num_steps)):
            delta = rewards[step] + 0.99 * values[step + 1] * alive[step] - values[step]
            later = delta + 0.99 * 0.95 * alive[step] * later
            advantages[step] = later
        returns = (advantages + values[:-1]).flatten()
    flat, gains = obs.flatten(0, 1), advantages.flatten()
    for _ in range(4):
        for rows in torch.randperm(len(flat)).split(args.minibatch):
            choice = torch.distributions.Categorical(logits=actor(flat[rows]))
            ratio = (choice.log_prob(actions.flatten()[rows]) - logprobs.flatten()[rows]).exp()
            gain = (gains[rows] - gains[rows].mean()) / (gains[rows].std() + 1e-8)
            policy_loss = -torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
            value_loss = (critic(flat[rows]).squeeze(-1) - returns[rows]).pow(2).mean()
            optimizer.zero_grad()
            (policy_loss + 0.5 * value_loss).backward()
            nn.utils.clip_grad_norm_(parameters, 0.5)
            optimizer.step()
    print(f"iteration {iteration}: {rewards.sum() / (1 - alive).sum():.0f} steps an episode")
envs.close()
