"""PPO on dictionaries of a picture and a vector, kept in a dictionary of numpy arrays."""

import argparse
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

CAMERA, SENSORS = (3, 72, 72), 32


class Rover(gym.Env[Any, Any]):
    """A rover with a camera and some sensors."""

    def __init__(self) -> None:
        camera = gym.spaces.Box(0, 255, CAMERA, np.uint8)
        sensors = gym.spaces.Box(-1, 1, (SENSORS,), np.float32)
        self.observation_space = gym.spaces.Dict({"camera": camera, "sensors": sensors})
        self.action_space = gym.spaces.Discrete(6)
        self.angle = self.time = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.angle, self.time = int(self.np_random.integers(72)), 0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.angle = (self.angle + int(action) - 2) % 72
        self.time += 1
        return self._seen(), -abs(self.angle - 36) / 36, False, self.time >= 100, {}

    def _seen(self) -> dict[str, Any]:
        camera = np.full(CAMERA, 60, np.uint8)
        camera[:, :, self.angle] = 250
        sensors = np.cos(np.arange(SENSORS) * self.angle / 36).astype(np.float32)
        return {"camera": camera, "sensors": sensors}


class Agent(nn.Module):
    """Two encoders, one trunk."""

    def __init__(self) -> None:
        super().__init__()
        self.eye = nn.Sequential(
            nn.Conv2d(3, 24, 6, stride=3), nn.ReLU(), nn.Conv2d(24, 32, 4, stride=2), nn.ReLU(),
            nn.Flatten(), nn.Linear(32 * 10 * 10, 256), nn.ReLU(),
        )  # fmt: skip
        self.touch = nn.Sequential(nn.Linear(SENSORS, 64), nn.ReLU())
        self.actor, self.critic = nn.Linear(320, 6), nn.Linear(320, 1)

    def forward(self, obs: dict[str, torch.Tensor]) -> tuple[Categorical, torch.Tensor]:
        hidden = torch.cat([self.eye(obs["camera"] / 255.0), self.touch(obs["sensors"])], 1)
        return Categorical(logits=self.actor(hidden)), self.critic(hidden).squeeze(1)


def tensors(obs: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    """The same as tensors."""
    return {name: torch.from_numpy(value) for name, value in obs.items()}


def train(n_envs: int, n_steps: int, batch_size: int, iterations: int) -> None:
    """Train."""
    envs = gym.vector.SyncVectorEnv([Rover for _ in range(n_envs)])
    agent = Agent()
    optimizer = torch.optim.Adam(agent.parameters(), lr=3e-4)
    rollout: dict[str, np.ndarray] = {
        "camera": np.zeros((n_steps, n_envs, *CAMERA), np.uint8),
        "sensors": np.zeros((n_steps, n_envs, SENSORS), np.float32),
    }
    actions = np.zeros((n_steps, n_envs), np.int64)
    logps, rewards, values = (np.zeros((n_steps, n_envs), np.float32) for _ in range(3))
    obs, _ = envs.reset(seed=5)
    for iteration in range(iterations):
        for step in range(n_steps):
            with torch.no_grad():
                policy, value = agent(tensors(obs))
                action = policy.sample()
            for name, array in rollout.items():
                array[step] = obs[name]
            actions[step], values[step], logps[step] = action, value, policy.log_prob(action)
            obs, rewards[step], _, _, _ = envs.step(action.numpy())
        returns = np.flip(np.cumsum(np.flip(rewards, 0), 0), 0)
        flat = {name: a.reshape(n_steps * n_envs, *a.shape[2:]) for name, a in rollout.items()}
        order = np.random.permutation(n_steps * n_envs)
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            policy, value = agent({name: torch.from_numpy(a[rows]) for name, a in flat.items()})
            wanted = torch.from_numpy(returns.reshape(-1)[rows])
            advantage = wanted - value.detach()
            logp = policy.log_prob(torch.from_numpy(actions.reshape(-1)[rows]))
            ratio = (logp - torch.from_numpy(logps.reshape(-1)[rows])).exp()
            gain = torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
            optimizer.zero_grad()
            ((value - wanted).pow(2).mean() - gain).backward()
            optimizer.step()
        torch.save({"agent": agent.state_dict(), "optimizer": optimizer.state_dict()}, "rover.pt")
        print(f"iteration {iteration}: {rewards.mean():.3f}")
    envs.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-envs", type=int, default=16)
    parser.add_argument("--n-steps", type=int, default=80)
    parser.add_argument("--batch-size", type=int, default=320)
    parser.add_argument("--iterations", type=int, default=4)
    train(**vars(parser.parse_args()))
