"""PPO with continuous actions: a dataclass of settings turned into argparse, wrapped envs."""

import argparse
from dataclasses import dataclass, fields

import gymnasium as gym
import numpy as np
import torch
from torch import nn, optim
from torch.distributions import Normal


@dataclass
class Args:
    """Settings of the training."""

    env_id: str = "Pendulum-v1"
    seed: int = 1
    num_envs: int = 16
    num_steps: int = 256
    num_iterations: int = 5
    num_minibatches: int = 8
    update_epochs: int = 2
    hidden: int = 512
    learning_rate: float = 3e-4
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip_coef: float = 0.2


def read_args() -> Args:
    """Make an option of each field."""
    parser = argparse.ArgumentParser(description=__doc__)
    for field in fields(Args):
        kind = type(field.default)
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=kind, default=field.default)
    return Args(**vars(parser.parse_args()))


def make_env(env_id: str, gamma: float) -> gym.Env[np.ndarray, np.ndarray]:
    """One env with the usual wrappers."""
    env: gym.Env[np.ndarray, np.ndarray] = gym.make(env_id)
    env = gym.wrappers.ClipAction(env)
    env = gym.wrappers.NormalizeObservation(env)
    env = gym.wrappers.NormalizeReward(env, gamma=gamma)
    return gym.wrappers.TransformReward(env, lambda reward: float(np.clip(float(reward), -10, 10)))


class Agent(nn.Module):
    """A Gaussian policy and a value."""

    def __init__(self, inputs: int, outputs: int, hidden: int) -> None:
        super().__init__()
        self.critic = nn.Sequential(
            nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(),
            nn.Linear(hidden, 1),
        )  # fmt: skip
        self.actor_mean = nn.Sequential(
            nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(),
            nn.Linear(hidden, outputs),
        )  # fmt: skip
        self.actor_logstd = nn.Parameter(torch.zeros(1, outputs))

    def policy(self, x: torch.Tensor) -> Normal:
        """What to do."""
        mean = self.actor_mean(x)
        return Normal(mean, self.actor_logstd.expand_as(mean).exp())


def main() -> None:
    """Train."""
    args = read_args()
    torch.manual_seed(args.seed)
    batch_size = args.num_envs * args.num_steps
    minibatch_size = batch_size // args.num_minibatches
    envs = gym.vector.SyncVectorEnv(
        [lambda: make_env(args.env_id, args.gamma) for _ in range(args.num_envs)]
    )
    inputs = int(np.prod(envs.single_observation_space.shape or ()))
    outputs = int(np.prod(envs.single_action_space.shape or ()))
    agent = Agent(inputs, outputs, args.hidden)
    optimizer = optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)
    obs = torch.zeros((args.num_steps, args.num_envs, inputs))
    actions = torch.zeros((args.num_steps, args.num_envs, outputs))
    logprobs, rewards, dones, values = torch.zeros((4, args.num_steps, args.num_envs))
    seen, _ = envs.reset(seed=args.seed)
    next_obs, next_done = torch.Tensor(seen), torch.zeros(args.num_envs)
    for iteration in range(args.num_iterations):
        for step in range(args.num_steps):
            obs[step], dones[step] = next_obs, next_done
            with torch.no_grad():
                policy = agent.policy(next_obs)
                action = policy.sample()
                values[step] = agent.critic(next_obs).flatten()
            actions[step], logprobs[step] = action, policy.log_prob(action).sum(1)
            seen, reward, terminated, truncated, _ = envs.step(action.numpy())
            rewards[step] = torch.tensor(reward)
            next_obs = torch.Tensor(seen)
            next_done = torch.Tensor(np.logical_or(terminated, truncated))
        with torch.no_grad():
            following = agent.critic(next_obs).flatten()
            advantages, last = torch.zeros_like(rewards), torch.zeros(args.num_envs)
            for t in reversed(range(args.num_steps)):
                going = 1.0 - (next_done if t == args.num_steps - 1 else dones[t + 1])
                delta = rewards[t] + args.gamma * following * going - values[t]
                last = delta + args.gamma * args.gae_lambda * going * last
                advantages[t], following = last, values[t]
            returns = (advantages + values).reshape(-1)
        b_obs, b_actions = obs.reshape(-1, inputs), actions.reshape(-1, outputs)
        b_logprobs, b_advantages = logprobs.reshape(-1), advantages.reshape(-1)
        for _ in range(args.update_epochs):
            for mb in torch.randperm(batch_size).split(minibatch_size):
                policy = agent.policy(b_obs[mb])
                ratio = (policy.log_prob(b_actions[mb]).sum(1) - b_logprobs[mb]).exp()
                advantage = b_advantages[mb]
                clipped = ratio.clamp(1 - args.clip_coef, 1 + args.clip_coef)
                pg_loss = -torch.min(advantage * ratio, advantage * clipped).mean()
                v_loss = 0.5 * (agent.critic(b_obs[mb]).flatten() - returns[mb]).pow(2).mean()
                optimizer.zero_grad()
                (pg_loss + 0.5 * v_loss).backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
        print(f"iteration {iteration}: mean reward {rewards.mean():.3f}")
    envs.close()


if __name__ == "__main__":
    main()
