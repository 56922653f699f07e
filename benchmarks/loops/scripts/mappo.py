"""Multi-agent PPO: actors see their part, one critic sees all; a buffer and a Runner class."""

import argparse
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical


class Warehouse:
    """Robots that carry things; PettingZoo's parallel interface, many copies at once."""

    def __init__(self, robots: int, shelves: int) -> None:
        self.agents = self.possible_agents = [f"robot_{number}" for number in range(robots)]
        self.rng = np.random.default_rng(2)
        self.stock = self.rng.random((robots, shelves), dtype=np.float32)

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[Any, Any]:
        """Fill the shelves."""
        self.stock[:] = self.rng.random(self.stock.shape, dtype=np.float32)
        return self._seen(), {}

    def step(self, actions: dict[str, int]) -> tuple[Any, Any, Any, Any, Any]:
        """Each robot takes from a quarter of its shelves."""
        rewards = {}
        for row, name in enumerate(self.agents):
            part = self.stock[row, actions[name] :: 4]
            rewards[name] = float(part.mean())
            part *= 0.9
        over = dict.fromkeys(self.agents, bool(self.rng.random() < 0.02))
        return self._seen(), rewards, over, over, {}

    def state(self) -> np.ndarray:
        """What the critic sees."""
        return self.stock.ravel().copy()

    def _seen(self) -> dict[str, np.ndarray]:
        return {name: self.stock[row].copy() for row, name in enumerate(self.agents)}


class SharedBuffer:
    """Rollouts of all copies and robots, in numpy."""

    def __init__(self, args: argparse.Namespace) -> None:
        shape = (args.episode_length, args.n_rollout_threads, args.n_agents)
        self.obs = np.zeros((*shape, args.shelves), np.float32)
        self.share_obs = np.zeros((*shape, args.shelves * args.n_agents), np.float32)
        self.actions = np.zeros(shape, np.int64)
        self.logp, self.rewards, self.values = (np.zeros(shape, np.float32) for _ in range(3))


class Runner:
    """Collects and trains."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.envs = [Warehouse(args.n_agents, args.shelves) for _ in range(args.n_rollout_threads)]
        self.actor = nn.Sequential(nn.Linear(args.shelves, 64), nn.ReLU(), nn.Linear(64, 4))
        state = args.shelves * args.n_agents
        self.critic = nn.Sequential(nn.Linear(state, 64), nn.ReLU(), nn.Linear(64, 1))
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=5e-4)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=5e-4)
        self.buffer = SharedBuffer(args)

    @torch.no_grad()
    def collect(self, step: int, seen: list[Any]) -> list[Any]:
        """One step of every copy."""
        obs = np.stack([np.stack(list(one.values())) for one in seen])
        states = np.stack([env.state() for env in self.envs])
        policy = Categorical(logits=self.actor(torch.from_numpy(obs)))
        actions = policy.sample()
        buffer = self.buffer
        buffer.obs[step], buffer.share_obs[step] = obs, states[:, None]
        buffer.actions[step], buffer.logp[step] = actions, policy.log_prob(actions)
        buffer.values[step] = self.critic(torch.from_numpy(states)).numpy()
        following = []
        for number, env in enumerate(self.envs):
            moves = dict(zip(env.agents, actions[number].tolist(), strict=True))
            after, rewards, over, _, _ = env.step(moves)
            buffer.rewards[step, number] = list(rewards.values())
            following.append(env.reset()[0] if any(over.values()) else after)
        return following

    def train(self) -> float:
        """One pass over the buffer in minibatches."""
        buffer, args = self.buffer, self.args
        returns = np.flip(np.cumsum(np.flip(buffer.rewards, 0), 0), 0).reshape(-1)
        advantages = returns - buffer.values.reshape(-1)
        obs = buffer.obs.reshape(-1, args.shelves)
        share_obs = buffer.share_obs.reshape(len(obs), -1)
        total = 0.0
        for rows in np.array_split(np.random.permutation(len(obs)), args.num_mini_batch):
            policy = Categorical(logits=self.actor(torch.from_numpy(obs[rows])))
            logp = policy.log_prob(torch.from_numpy(buffer.actions.reshape(-1)[rows]))
            ratio = (logp - torch.from_numpy(buffer.logp.reshape(-1)[rows])).exp()
            advantage = torch.from_numpy(advantages[rows])
            actor_loss = -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
            self.actor_optimizer.zero_grad()
            actor_loss.backward()
            self.actor_optimizer.step()
            values = self.critic(torch.from_numpy(share_obs[rows])).squeeze(1)
            critic_loss = nn.functional.huber_loss(values, torch.from_numpy(returns[rows].copy()))
            self.critic_optimizer.zero_grad()
            critic_loss.backward()
            self.critic_optimizer.step()
            total += float(critic_loss)
        return total

    def run(self) -> None:
        """The whole training."""
        seen = [env.reset()[0] for env in self.envs]
        for episode in range(self.args.episodes):
            for step in range(self.args.episode_length):
                seen = self.collect(step, seen)
            print(f"episode {episode}: value loss {self.train():.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n_rollout_threads", type=int, default=16)
    parser.add_argument("--n_agents", type=int, default=8)
    parser.add_argument("--episode_length", type=int, default=100)
    parser.add_argument("--shelves", type=int, default=800)
    parser.add_argument("--num_mini_batch", type=int, default=10)
    parser.add_argument("--episodes", type=int, default=3)
    Runner(parser.parse_args()).run()
