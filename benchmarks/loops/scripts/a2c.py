"""Advantage actor-critic with RMSprop: constants in capitals, short and wide rollouts."""

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

NUM_ENVS = 256
NUM_STEPS = 8
UPDATES = 40
OBS_SIZE = 6000
HIDDEN = 192
GAMMA = 0.99


class Market:
    """Many small markets at once, in numpy: no Gymnasium."""

    def __init__(self, n: int) -> None:
        self.rng = np.random.default_rng(3)
        self.prices = np.ones((n, OBS_SIZE), np.float32)

    def reset(self) -> np.ndarray:
        """Begin anew."""
        self.prices[:] = 1
        return self.prices.copy()

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Prices move a little; who holds gains what the mean gained."""
        move = self.rng.normal(0, 0.01, (len(actions), 1)).astype(np.float32)
        self.prices *= 1 + move
        done = self.rng.random(len(actions)) < 0.01
        self.prices[done] = 1
        return self.prices.copy(), move[:, 0] * (actions - 1), done, {}


class ActorCritic(nn.Module):
    """A trunk with two heads."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(OBS_SIZE, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU()
        )
        self.pi, self.v = nn.Linear(HIDDEN, 3), nn.Linear(HIDDEN, 1)

    def forward(self, x: torch.Tensor) -> tuple[Categorical, torch.Tensor]:
        hidden = self.trunk(x)
        return Categorical(logits=self.pi(hidden)), self.v(hidden).squeeze(-1)


def main() -> None:
    """Train."""
    env = Market(NUM_ENVS)
    model = ActorCritic()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=7e-4, alpha=0.99, eps=1e-5)
    state = torch.from_numpy(env.reset())
    for update in range(UPDATES):
        states, logps, values, rewards, masks, entropies = [], [], [], [], [], []
        for _ in range(NUM_STEPS):
            policy, value = model(state)  # the graph of the rollout is kept for the update
            action = policy.sample()
            following, reward, done, _ = env.step(action.numpy())
            states.append(state)
            logps.append(policy.log_prob(action))
            entropies.append(policy.entropy())
            values.append(value)
            rewards.append(torch.from_numpy(reward).float())
            masks.append(torch.from_numpy(1.0 - done).float())
            state = torch.from_numpy(following)
        with torch.no_grad():
            future = model(state)[1]
        targets: list[torch.Tensor] = []
        for gain, mask in zip(reversed(rewards), reversed(masks), strict=True):
            future = gain + GAMMA * future * mask
            targets.insert(0, future)
        advantage = torch.stack(targets) - torch.stack(values)
        policy_loss = -(torch.stack(logps) * advantage.detach()).mean()
        loss = policy_loss + 0.5 * advantage.pow(2).mean() - 0.01 * torch.stack(entropies).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        if update % 10 == 0:
            print(f"update {update}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
