"""Independent PPO of many agents in an env with PettingZoo's parallel interface."""

import argparse
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

Each = dict[str, Any]


class Meadow:
    """Sheep on a grid that see a window around themselves; `parallel_env` of our own."""

    def __init__(self, agents: int, window: int) -> None:
        self.possible_agents = [f"sheep_{number}" for number in range(agents)]
        self.window = window
        self.rng = np.random.default_rng(5)

    def reset(self, seed: int | None = None, options: Each | None = None) -> tuple[Each, Each]:
        """Place the agents."""
        self.agents = list(self.possible_agents)
        self.grass = self.rng.random((128, 128), dtype=np.float32)
        self.places = self.rng.integers(0, 128, (len(self.agents), 2))
        self.time = 0
        return self._seen(), {agent: {} for agent in self.agents}

    def step(self, actions: Each) -> tuple[Each, Each, Each, Each, Each]:
        """Move everyone at once."""
        moves = np.array([[0, 0], [0, 1], [1, 0], [0, -1], [-1, 0]])
        chosen = np.array([actions[agent] for agent in self.agents])
        self.places = (self.places + moves[chosen]) % 128
        eaten = self.grass[self.places[:, 0], self.places[:, 1]].copy()
        self.grass[self.places[:, 0], self.places[:, 1]] *= 0.5
        self.time += 1
        over = self.time >= 100
        rewards = dict(zip(self.agents, eaten, strict=True))
        terminations = dict.fromkeys(self.agents, False)
        truncations = dict.fromkeys(self.agents, over)
        seen = self._seen()
        infos: Each = {agent: {} for agent in self.agents}
        if over:
            self.agents = []
        return seen, rewards, terminations, truncations, infos

    def _seen(self) -> Each:
        padded = np.pad(self.grass, self.window, mode="wrap")
        size = 2 * self.window + 1
        return {
            agent: padded[row : row + size, column : column + size].ravel()
            for agent, (row, column) in zip(self.agents, self.places, strict=True)
        }


class Agent(nn.Module):
    """One network that all agents share."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, 256), nn.ReLU())
        self.actor, self.critic = nn.Linear(256, 5), nn.Linear(256, 1)

    def forward(self, x: torch.Tensor) -> tuple[Categorical, torch.Tensor]:
        hidden = self.body(x)
        return Categorical(logits=self.actor(hidden)), self.critic(hidden).squeeze(-1)


def batchify(values: Each, agents: list[str]) -> torch.Tensor:
    """One tensor of what each agent has."""
    return torch.from_numpy(np.stack([values[agent] for agent in agents]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-agents", type=int, default=200)
    parser.add_argument("--max-cycles", type=int, default=100)
    parser.add_argument("--window", type=int, default=15)
    parser.add_argument("--batch-size", type=int, default=4000)
    parser.add_argument("--total-episodes", type=int, default=5)
    args = parser.parse_args()

    env = Meadow(args.num_agents, args.window)
    inputs = (2 * args.window + 1) ** 2
    agent = Agent(inputs)
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3)
    rb_obs = torch.zeros((args.max_cycles, args.num_agents, inputs))
    rb_actions = torch.zeros((args.max_cycles, args.num_agents))
    rb_logprobs = torch.zeros((args.max_cycles, args.num_agents))
    rb_rewards = torch.zeros((args.max_cycles, args.num_agents))
    rb_values = torch.zeros((args.max_cycles, args.num_agents))
    for episode in range(args.total_episodes):
        seen, infos = env.reset()
        names = env.possible_agents
        for step in range(args.max_cycles):
            obs = batchify(seen, names)
            with torch.no_grad():
                policy, value = agent(obs)
                chosen = policy.sample()
            moves = dict(zip(names, chosen.tolist(), strict=True))
            seen, rewards, terminations, truncations, infos = env.step(moves)
            rb_obs[step], rb_actions[step], rb_values[step] = obs, chosen, value
            rb_logprobs[step] = policy.log_prob(chosen)
            rb_rewards[step] = batchify(rewards, names)
        returns, future = torch.zeros_like(rb_rewards), rb_values[-1]
        for t in reversed(range(args.max_cycles)):
            future = rb_rewards[t] + 0.99 * future
            returns[t] = future
        b_obs, b_returns = rb_obs.flatten(0, 1), returns.flatten()
        b_actions, b_logprobs = rb_actions.flatten(), rb_logprobs.flatten()
        b_advantages = b_returns - rb_values.flatten()
        for _ in range(2):
            for inds in torch.randperm(len(b_obs)).split(args.batch_size):
                policy, value = agent(b_obs[inds])
                ratio = (policy.log_prob(b_actions[inds]) - b_logprobs[inds]).exp()
                advantage = b_advantages[inds]
                gain = torch.min(advantage * ratio, advantage * ratio.clamp(0.8, 1.2)).mean()
                loss = 0.5 * (value - b_returns[inds]).pow(2).mean() - gain
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        print(f"episode {episode}: return {rb_rewards.sum(0).mean():.2f}")
