"""A recurrent world model: sequences from a list of episodes, behaviour learned by imagining."""

import argparse
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import nn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--batch-length", type=int, default=32)
parser.add_argument("--horizon", type=int, default=10)
parser.add_argument("--deter", type=int, default=256)
parser.add_argument("--prefill", type=int, default=3_000)
parser.add_argument("--steps", type=int, default=5_000)
parser.add_argument("--train-every", type=int, default=250)


def picture(state: Any) -> np.ndarray:
    """The cart drawn by hand in 32 by 32 points."""
    out = np.zeros((1, 32, 32), np.uint8)
    column = int(np.clip((state[0] + 2.4) / 4.8 * 31, 0, 31))
    tip = int(np.clip(column + 40 * state[2], 0, 31))
    out[0, 24:28, max(0, column - 3) : column + 4] = 200
    out[0, 8:24, min(column, tip) : max(column, tip) + 1] = 255
    return out


class WorldModel(nn.Module):
    """A recurrent state, from pictures and actions, and back to pictures and rewards."""

    def __init__(self, deter: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, 4, 2), nn.ELU(), nn.Conv2d(16, 32, 4, 2), nn.ELU(), nn.Flatten()
        )
        self.cell = nn.GRUCell(32 * 36 + 2, deter)
        self.prior = nn.Linear(deter, 32 * 36)
        self.decoder = nn.Sequential(
            nn.Linear(deter, 32 * 64), nn.Unflatten(1, (32, 8, 8)),
            nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.ELU(), nn.ConvTranspose2d(16, 1, 4, 2, 1),
        )  # fmt: skip
        self.reward = nn.Linear(deter, 1)


def sequences(episodes: list[dict[str, np.ndarray]], args: Any) -> dict[str, torch.Tensor]:
    """Windows of episodes that are long enough."""
    long = [e for e in episodes if len(e["action"]) > args.batch_length]
    parts: dict[str, list[np.ndarray]] = {"image": [], "action": [], "reward": []}
    for _ in range(args.batch_size):
        episode = long[np.random.randint(len(long))]
        start = np.random.randint(len(episode["action"]) - args.batch_length)
        for name, windows in parts.items():
            windows.append(episode[name][start : start + args.batch_length])
    return {name: torch.from_numpy(np.stack(windows)) for name, windows in parts.items()}


def main() -> None:
    """Play, and train at intervals."""
    args = parser.parse_args()
    env = gym.wrappers.TimeLimit(gym.make("CartPole-v1").unwrapped, 400)
    model = WorldModel(args.deter)
    actor = nn.Sequential(nn.Linear(args.deter, 128), nn.ELU(), nn.Linear(128, 2))
    critic = nn.Sequential(nn.Linear(args.deter, 128), nn.ELU(), nn.Linear(128, 1))
    model_opt = torch.optim.Adam(model.parameters(), lr=3e-4)
    actor_opt = torch.optim.Adam(actor.parameters(), lr=8e-5)
    critic_opt = torch.optim.Adam(critic.parameters(), lr=8e-5)
    episodes: list[dict[str, np.ndarray]] = []
    current: dict[str, list[Any]] = {"image": [], "action": [], "reward": []}
    state, _ = env.reset(seed=0)
    for step in range(args.steps):
        action = int(state[2] + 0.3 * state[3] + np.random.normal(0, 0.1) > 0)
        current["image"].append(picture(state))
        current["action"].append(action)
        state, reward, terminated, truncated, _ = env.step(action)
        current["reward"].append(np.float32(reward))
        if terminated or truncated:
            episodes.append({name: np.array(values) for name, values in current.items()})
            current = {name: [] for name in current}
            state, _ = env.reset()
        if step < args.prefill or step % args.train_every:
            continue
        batch = sequences(episodes, args)
        images = batch["image"].float() / 255 - 0.5
        codes = model.encoder(images.flatten(0, 1)).unflatten(0, images.shape[:2])
        moves = nn.functional.one_hot(batch["action"], 2).float()
        hidden = torch.zeros(args.batch_size, args.deter)
        states, losses = [], []
        for t in range(args.batch_length):
            losses.append((model.prior(hidden) - codes[:, t].detach()).pow(2).mean())
            hidden = model.cell(torch.cat([codes[:, t], moves[:, t]], 1), hidden)
            states.append(hidden)
        flat = torch.stack(states, 1).flatten(0, 1)
        decoded = model.decoder(flat)
        loss = (decoded - images.flatten(0, 1)).pow(2).mean() + torch.stack(losses).mean()
        loss = loss + (model.reward(flat).squeeze(1) - batch["reward"].flatten()).pow(2).mean()
        model_opt.zero_grad()
        loss.backward()
        model_opt.step()
        imagined, hidden = [], flat.detach()
        for _ in range(args.horizon):
            chances = actor(hidden).softmax(-1)
            hidden = model.cell(torch.cat([model.prior(hidden), chances], 1), hidden)
            imagined.append(hidden)
        dreams = torch.stack(imagined)
        gains = model.reward(dreams).squeeze(-1).flip(0).cumsum(0).flip(0)
        actor_opt.zero_grad()
        (-gains.mean()).backward()
        actor_opt.step()
        value_loss = (critic(dreams.detach()).squeeze(-1) - gains.detach()).pow(2).mean()
        critic_opt.zero_grad()
        value_loss.backward()
        critic_opt.step()
        print(f"step {step}: model {loss.item():.3f}, value {value_loss.item():.3f}")


if __name__ == "__main__":
    main()
