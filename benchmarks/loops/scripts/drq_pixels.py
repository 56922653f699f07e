"""Actor-critic from pixels with random shifts: a lazily filled replay of torch bytes."""

import argparse
import copy
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.nn import functional

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--capacity", type=int, default=100_000)
parser.add_argument("--num-train-steps", type=int, default=26_000)
parser.add_argument("--num-seed-steps", type=int, default=20_000)
parser.add_argument("--update-every", type=int, default=300)
parser.add_argument("--batch-size", type=int, default=48)
parser.add_argument("--image-size", type=int, default=64)


class Pendulum(gym.Wrapper[Any, Any, Any, Any]):
    """Draws the pendulum as a picture of three colours."""

    def __init__(self, size: int) -> None:
        super().__init__(gym.make("Pendulum-v1"))
        self.size = size
        self.observation_space = gym.spaces.Box(0, 255, (3, size, size), np.uint8)

    def reset(self, **words: Any) -> tuple[Any, dict[str, Any]]:
        seen, info = super().reset(**words)
        return self._draw(seen), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        seen, reward, terminated, truncated, info = super().step(action)
        return self._draw(seen), reward, terminated, truncated, info

    def _draw(self, seen: Any) -> Any:
        picture = np.full((3, self.size, self.size), 20, np.uint8)
        middle = self.size // 2
        for part in np.linspace(0, middle - 3, 12):
            row, column = int(middle - part * seen[0]), int(middle + part * seen[1])
            picture[:, row : row + 2, column : column + 2] = 240
        return picture


class Encoder(nn.Module):
    """Pictures to vectors."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.convs = nn.Sequential(
            nn.Conv2d(3, 32, 3, stride=2), nn.ReLU(), nn.Conv2d(32, 32, 3, stride=2), nn.ReLU(),
            nn.Conv2d(32, 32, 3), nn.ReLU(), nn.Flatten(),
        )  # fmt: skip
        flat = self.convs(torch.zeros(1, 3, size, size)).shape[1]
        self.head = nn.Sequential(nn.Linear(flat, 50), nn.LayerNorm(50), nn.Tanh())

    def forward(self, picture: torch.Tensor) -> torch.Tensor:
        code: torch.Tensor = self.head(self.convs(picture / 255.0))
        return code


def shifted(pictures: torch.Tensor) -> torch.Tensor:
    """Pad and crop at random."""
    size = pictures.shape[-1]
    padded = functional.pad(pictures.float(), (4, 4, 4, 4), mode="replicate")
    row, column = np.random.randint(0, 8, 2)
    return padded[:, :, row : row + size, column : column + size]


def main() -> None:
    """Train."""
    args = parser.parse_args()
    env = Pendulum(args.image_size)
    encoder = Encoder(args.image_size)
    actor = nn.Sequential(nn.Linear(50, 256), nn.ReLU(), nn.Linear(256, 1), nn.Tanh())
    critic = nn.Sequential(nn.Linear(51, 256), nn.ReLU(), nn.Linear(256, 1))
    critic_target, encoder_target = copy.deepcopy(critic), copy.deepcopy(encoder)
    critic_opt = torch.optim.Adam([*encoder.parameters(), *critic.parameters()], lr=1e-3)
    actor_opt = torch.optim.Adam(actor.parameters(), lr=1e-3)
    shape = (args.capacity, 3, args.image_size, args.image_size)
    obses = torch.empty(shape, dtype=torch.uint8)
    next_obses = torch.empty(shape, dtype=torch.uint8)
    actions, rewards = torch.zeros(args.capacity, 1), torch.zeros(args.capacity, 1)
    obs, _ = env.reset(seed=1)
    for step in range(args.num_train_steps):
        if step < args.num_seed_steps or step % 10:
            action = np.random.uniform(-1, 1, 1).astype(np.float32)
        else:
            with torch.no_grad():
                action = actor(encoder(torch.from_numpy(obs)[None])).numpy()[0]
        next_obs, reward, _, truncated, _ = env.step(2 * action)
        at = step % args.capacity
        obses[at], next_obses[at] = torch.from_numpy(obs), torch.from_numpy(next_obs)
        actions[at], rewards[at] = torch.from_numpy(action), float(reward)
        obs = env.reset()[0] if truncated else next_obs
        if step < args.num_seed_steps or step % args.update_every:
            continue
        rows = torch.randint(0, min(step + 1, args.capacity), (args.batch_size,))
        now, then = shifted(obses[rows]), shifted(next_obses[rows])
        with torch.no_grad():
            code = encoder_target(then)
            wanted = critic_target(torch.cat([code, actor(code)], 1))
            wanted = rewards[rows] + 0.99 * wanted
        code = encoder(now)
        critic_loss = functional.mse_loss(critic(torch.cat([code, actions[rows]], 1)), wanted)
        critic_opt.zero_grad()
        critic_loss.backward()
        critic_opt.step()
        code = code.detach()
        actor_loss = -critic(torch.cat([code, actor(code)], 1)).mean()
        actor_opt.zero_grad()
        actor_loss.backward()
        actor_opt.step()
        with torch.no_grad():
            for net, slow in ((critic, critic_target), (encoder, encoder_target)):
                for p, q in zip(net.parameters(), slow.parameters(), strict=True):
                    q.lerp_(p, 0.01)
        if step % 3000 == 0:
            print(f"step {step}: critic loss {critic_loss.item():.3f}")


if __name__ == "__main__":
    main()
