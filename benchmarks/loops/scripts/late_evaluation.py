"""PPO that evaluates on many envs and saves after every so many iterations."""

import argparse
from pathlib import Path

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.distributions import Normal

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--num-envs", type=int, default=8)
parser.add_argument("--num-steps", type=int, default=256)
parser.add_argument("--eval-envs", type=int, default=64)
parser.add_argument("--iterations", type=int, default=12)
parser.add_argument("--eval-every", type=int, default=6)
args = parser.parse_args()


def envs_of(n: int) -> gym.vector.SyncVectorEnv:
    """Some pendulums."""
    return gym.vector.SyncVectorEnv([lambda: gym.make("Pendulum-v1") for _ in range(n)])


def network(width: int) -> nn.Sequential:
    """Three sensors to one number."""
    inner = (nn.Linear(3, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
    return nn.Sequential(*inner, nn.Linear(width, 1))


actor, critic, logstd = network(1500), network(64), nn.Parameter(torch.zeros(1))
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters(), logstd], 3e-4)


def evaluate(n: int) -> float:
    """The mean of all pictures of an episode of each env."""
    others, frames = envs_of(n), []
    seen, _ = others.reset(seed=5)
    for _ in range(200):
        with torch.no_grad():
            moves = actor(torch.as_tensor(seen)).numpy()
        seen = others.step(moves)[0]
        frames.append(np.repeat(seen, 40, 0).astype(np.float64))
    return float(np.stack(frames).mean())


envs = envs_of(args.num_envs)
obs = torch.zeros(args.num_steps, args.num_envs, 3)
actions = torch.zeros(args.num_steps, args.num_envs, 1)
logprobs = torch.zeros(args.num_steps, args.num_envs)
rewards = torch.zeros(args.num_steps, args.num_envs)
next_obs, _ = envs.reset(seed=1)
for iteration in range(1, args.iterations + 1):
    for step in range(args.num_steps):
        obs[step] = torch.as_tensor(next_obs)
        with torch.no_grad():
            policy = Normal(actor(obs[step]), logstd.exp())
            actions[step] = policy.sample()
            logprobs[step] = policy.log_prob(actions[step]).sum(1)
        next_obs, reward, *_ = envs.step(actions[step].clamp(-2, 2).numpy())
        rewards[step] = torch.as_tensor(reward)
    returns, future = torch.zeros_like(rewards), torch.zeros(args.num_envs)
    for t in reversed(range(args.num_steps)):
        future = rewards[t] + 0.9 * future
        returns[t] = future
    flat = obs.flatten(0, 1), actions.flatten(0, 1), logprobs.flatten(), returns.flatten()
    for _ in range(2):
        for rows in torch.randperm(len(flat[0])).split(512):
            x, a, old, target = (part[rows] for part in flat)
            policy, value = Normal(actor(x), logstd.exp()), critic(x).squeeze(1)
            ratio, advantage = (policy.log_prob(a).sum(1) - old).exp(), target - value
            loss = -(ratio * advantage.detach()).mean() + advantage.pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    if iteration % args.eval_every == 0:
        print(f"iteration {iteration}: {evaluate(args.eval_envs):.3f}")
        both = {"actor": actor.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(both, Path("late_evaluation.pt"))
