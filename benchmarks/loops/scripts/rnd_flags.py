"""PPO with a curiosity bonus (random network distillation); settings are absl flags."""

from typing import Any

import gymnasium as gym
import numpy as np
import torch
from absl import app, flags
from torch import nn
from torch.distributions import Categorical

FLAGS = flags.FLAGS
flags.DEFINE_integer("num_envs", 12, "envs at once")
flags.DEFINE_integer("num_steps", 64, "steps of a rollout")
flags.DEFINE_integer("minibatch", 192, "samples of an update")
flags.DEFINE_integer("iterations", 4, "rollouts")
flags.DEFINE_float("bonus", 0.5, "weight of the curiosity")


class Maze(gym.Env[Any, Any]):
    """A maze of which one picture is seen."""

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(0, 1, (2, 60, 60), np.float32)
        self.action_space = gym.spaces.Discrete(4)
        self.walls = np.random.default_rng(4).random((60, 60)) < 0.2
        self.walls[0, 0] = False
        self.place = (0, 0)
        self.time = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.place, self.time = (0, 0), 0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        down, right = ((0, 1), (1, 0), (0, -1), (-1, 0))[int(action)]
        row, column = (self.place[0] + down) % 60, (self.place[1] + right) % 60
        if not self.walls[row, column]:
            self.place = (row, column)
        self.time += 1
        return self._seen(), float(row == column == 59), False, self.time >= 300, {}

    def _seen(self) -> Any:
        seen = np.zeros((2, 60, 60), np.float32)
        seen[0] = self.walls
        seen[1][self.place] = 1
        return seen


def body(outputs: int) -> nn.Sequential:
    """Convolutions and a head."""
    return nn.Sequential(
        nn.Conv2d(2, 16, 5, 2), nn.LeakyReLU(), nn.Conv2d(16, 32, 3, 2), nn.LeakyReLU(),
        nn.Flatten(), nn.Linear(32 * 13 * 13, 128), nn.ReLU(), nn.Linear(128, outputs),
    )  # fmt: skip


def main(_argv: list[str]) -> None:
    """Train."""
    envs = gym.vector.SyncVectorEnv([Maze for _ in range(FLAGS.num_envs)])
    agent, predictor, fixed = body(5), body(64), body(64).requires_grad_(False)
    optimizer = torch.optim.Adam([*agent.parameters(), *predictor.parameters()], lr=1e-4)
    steps, count = FLAGS.num_steps, FLAGS.num_envs
    obs = torch.zeros(steps, count, 2, 60, 60)
    actions = torch.zeros(steps, count, dtype=torch.int64)
    logps, rewards, values, curiosity = (torch.zeros(steps, count) for _ in range(4))
    seen = torch.from_numpy(envs.reset(seed=1)[0])
    for iteration in range(FLAGS.iterations):
        for step in range(steps):
            obs[step] = seen
            with torch.no_grad():
                out = agent(seen)
                policy, values[step] = Categorical(logits=out[:, :4]), out[:, 4]
                actions[step] = policy.sample()
                logps[step] = policy.log_prob(actions[step])
            after, reward, *_ = envs.step(actions[step].numpy())
            seen, rewards[step] = torch.from_numpy(after), torch.from_numpy(reward)
            with torch.no_grad():
                curiosity[step] = (predictor(seen) - fixed(seen)).pow(2).mean(1)
        total = rewards + FLAGS.bonus * curiosity / (curiosity.std() + 1e-6)
        returns = total.flip(0).cumsum(0).flip(0)
        flat = [part.flatten(0, 1) for part in (obs, actions, logps, returns, returns - values)]
        for rows in torch.randperm(steps * count).split(FLAGS.minibatch):
            o, a, old, wanted, advantage = (part[rows] for part in flat)
            out = agent(o)
            ratio = (Categorical(logits=out[:, :4]).log_prob(a) - old).exp()
            gain = torch.min(ratio * advantage, ratio.clamp(0.9, 1.1) * advantage).mean()
            distill = (predictor(o) - fixed(o)).pow(2).mean()
            loss = (out[:, 4] - wanted).pow(2).mean() - gain + distill
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"iteration {iteration}: curiosity {curiosity.mean():.4f}")
    envs.close()


if __name__ == "__main__":
    app.run(main)
