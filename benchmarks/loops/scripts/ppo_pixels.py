"""PPO on stacked grey frames: observations are kept as float32 beside a convolutional network."""

import argparse
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import nn, optim
from torch.distributions import Categorical


class Falling(gym.Env[Any, Any]):
    """A dot falls; a paddle below has to catch it."""

    def __init__(self, side: int = 84) -> None:
        self.side = side
        self.observation_space = gym.spaces.Box(0, 255, (4, side, side), np.uint8)
        self.action_space = gym.spaces.Discrete(3)
        self.frames = np.zeros((4, side, side), np.uint8)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.frames[:] = 0
        self.row, self.column = 0, int(self.np_random.integers(2, self.side - 2))
        self.paddle = self.side // 2
        return self._draw(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.paddle = int(np.clip(self.paddle + 3 * (int(action) - 1), 2, self.side - 3))
        self.row += 2
        done = self.row >= self.side - 4
        caught = done and abs(self.paddle - self.column) < 4
        return self._draw(), float(caught), done, False, {}

    def _draw(self) -> Any:
        self.frames[:-1] = self.frames[1:]
        self.frames[-1] = 0
        self.frames[-1, self.row : self.row + 2, self.column - 1 : self.column + 1] = 255
        self.frames[-1, -2:, self.paddle - 2 : self.paddle + 3] = 128
        return self.frames.copy()


class Agent(nn.Module):
    """Convolutions that policy and value share."""

    def __init__(self, actions: int, side: int) -> None:
        super().__init__()
        convolutions = nn.Sequential(
            nn.Conv2d(4, 32, 8, stride=4), nn.ReLU(),
            nn.Conv2d(32, 64, 4, stride=2), nn.ReLU(),
            nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(),
        )  # fmt: skip
        size = convolutions(torch.zeros(1, 4, side, side)).shape[1]
        self.network = nn.Sequential(convolutions, nn.Linear(size, 512), nn.ReLU())
        self.actor = nn.Linear(512, actions)
        self.critic = nn.Linear(512, 1)

    def forward(self, x: torch.Tensor) -> tuple[Categorical, torch.Tensor]:
        hidden = self.network(x / 255.0)
        return Categorical(logits=self.actor(hidden)), self.critic(hidden).flatten()


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--num-envs", type=int, default=8)
parser.add_argument("--num-steps", type=int, default=128)
parser.add_argument("--num-minibatches", type=int, default=4)
parser.add_argument("--update-epochs", type=int, default=1)
parser.add_argument("--num-iterations", type=int, default=5)
parser.add_argument("--side", type=int, default=84)

if __name__ == "__main__":
    args = parser.parse_args()
    batch_size = args.num_envs * args.num_steps
    minibatch_size = batch_size // args.num_minibatches
    envs = gym.vector.SyncVectorEnv([lambda: Falling(args.side) for _ in range(args.num_envs)])
    agent = Agent(3, args.side)
    optimizer = optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
    obs = torch.zeros((args.num_steps, args.num_envs, 4, args.side, args.side))
    actions = torch.zeros((args.num_steps, args.num_envs), dtype=torch.long)
    logprobs = torch.zeros((args.num_steps, args.num_envs))
    rewards = torch.zeros((args.num_steps, args.num_envs))
    dones = torch.zeros((args.num_steps, args.num_envs))
    values = torch.zeros((args.num_steps, args.num_envs))
    next_obs = torch.Tensor(envs.reset(seed=1)[0])
    next_done = torch.zeros(args.num_envs)
    for iteration in range(args.num_iterations):
        for step in range(args.num_steps):
            obs[step], dones[step] = next_obs, next_done
            with torch.no_grad():
                policy, values[step] = agent(next_obs)
                actions[step] = policy.sample()
                logprobs[step] = policy.log_prob(actions[step])
            seen, reward, terminated, truncated, infos = envs.step(actions[step].numpy())
            next_obs, rewards[step] = torch.Tensor(seen), torch.tensor(reward)
            next_done = torch.Tensor(terminated | truncated)
        with torch.no_grad():
            following = agent(next_obs)[1]
            advantages, last = torch.zeros_like(rewards), torch.zeros(args.num_envs)
            for t in reversed(range(args.num_steps)):
                going = 1.0 - (next_done if t == args.num_steps - 1 else dones[t + 1])
                delta = rewards[t] + 0.99 * following * going - values[t]
                last = delta + 0.99 * 0.95 * going * last
                advantages[t], following = last, values[t]
        b_obs = obs.reshape((-1, 4, args.side, args.side))
        b_actions, b_logprobs = actions.reshape(-1), logprobs.reshape(-1)
        b_advantages, b_returns = advantages.reshape(-1), (advantages + values).reshape(-1)
        b_inds = np.arange(batch_size)
        for _ in range(args.update_epochs):
            np.random.shuffle(b_inds)
            for start in range(0, batch_size, minibatch_size):
                mb_inds = b_inds[start : start + minibatch_size]
                policy, newvalue = agent(b_obs[mb_inds])
                ratio = (policy.log_prob(b_actions[mb_inds]) - b_logprobs[mb_inds]).exp()
                advantage = b_advantages[mb_inds]
                pg_loss = -torch.min(advantage * ratio, advantage * ratio.clamp(0.9, 1.1)).mean()
                v_loss = 0.5 * (newvalue - b_returns[mb_inds]).pow(2).mean()
                loss = pg_loss + 0.5 * v_loss - 0.01 * policy.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
        print(f"iteration {iteration}: caught {int(rewards.sum())}")
    envs.close()
