"""PPO over an AsyncVectorEnv: each env in a process of its own, observations in shared memory."""

import argparse
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical


class Radar(gym.Env[Any, Any]):
    """A long range profile; every env has a map of its own."""

    def __init__(self, bins: int, map_mib: int) -> None:
        self.observation_space = gym.spaces.Box(0, 1, (bins,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.bins, self.map_mib, self.at = bins, map_mib, 0
        self.map = np.zeros(0, np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if not len(self.map):
            self.map = self.np_random.random(self.map_mib << 18, dtype=np.float32)
        self.at = 0
        return self.map[: self.bins], {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.at += 1 + int(action)
        window = self.map[self.at : self.at + self.bins]
        return window, float(window[0]), self.at > 2000, False, {}


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-envs", type=int, default=6)
    parser.add_argument("--num-steps", type=int, default=512)
    parser.add_argument("--minibatch-size", type=int, default=512)
    parser.add_argument("--updates", type=int, default=4)
    parser.add_argument("--bins", type=int, default=4096)
    parser.add_argument("--map-mib", type=int, default=24)
    args = parser.parse_args()
    envs = gym.vector.AsyncVectorEnv(
        [lambda: Radar(args.bins, args.map_mib) for _ in range(args.num_envs)]
    )
    body = nn.Sequential(nn.Linear(args.bins, 128), nn.ReLU())
    actor, critic = nn.Linear(128, 2), nn.Linear(128, 1)
    parameters = [*body.parameters(), *actor.parameters(), *critic.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=3e-4)
    storage = np.zeros((args.num_steps, args.num_envs, args.bins), np.float32)
    actions = np.zeros((args.num_steps, args.num_envs), np.int64)
    rewards = np.zeros((args.num_steps, args.num_envs), np.float32)
    old = np.zeros((args.num_steps, args.num_envs), np.float32)
    seen, _ = envs.reset(seed=3)
    for update in range(args.updates):
        for step in range(args.num_steps):
            with torch.no_grad():
                policy = Categorical(logits=actor(body(torch.from_numpy(seen))))
                action = policy.sample()
            storage[step], actions[step] = seen, action.numpy()
            old[step] = policy.log_prob(action).numpy()
            seen, rewards[step], _, _, _ = envs.step(actions[step])
        returns = np.flip(np.cumsum(np.flip(rewards, 0), 0), 0).copy()
        flat = storage.reshape(-1, args.bins)
        order = np.random.permutation(len(flat))
        for start in range(0, len(flat), args.minibatch_size):
            rows = order[start : start + args.minibatch_size]
            hidden = body(torch.from_numpy(flat[rows]))
            policy = Categorical(logits=actor(hidden))
            value = critic(hidden).squeeze(1)
            target = torch.from_numpy(returns.ravel()[rows])
            chosen = torch.from_numpy(actions.ravel()[rows])
            ratio = (policy.log_prob(chosen) - torch.from_numpy(old.ravel()[rows])).exp()
            advantage = target - value.detach()
            gain = torch.min(advantage * ratio, advantage * ratio.clamp(0.8, 1.2)).mean()
            optimizer.zero_grad()
            (0.5 * (value - target).pow(2).mean() - gain).backward()
            optimizer.step()
        print(f"update {update}: {rewards.mean():.3f}")
    envs.close()


if __name__ == "__main__":
    main()
