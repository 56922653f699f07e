"""Independent Q-learning of a team in dicts: pictures of an odd size, replays in lists."""

import random
from typing import Any

import numpy as np
import torch
from torch import nn

CONFIG = {"n_agents": 3, "capacity": 1200, "batch_size": 96, "warmup": 300, "steps": 2000}


class Arena:
    """What each of a team sees is noise."""

    def __init__(self, n_agents: int) -> None:
        self.agents = [f"agent_{i}" for i in range(n_agents)]
        self.rng, self.turn = np.random.default_rng(1), 0

    def look(self) -> dict[str, np.ndarray]:
        """A picture for each."""
        return {a: self.rng.integers(0, 255, (37, 53), dtype=np.uint8) for a in self.agents}

    def reset(self) -> dict[str, np.ndarray]:
        """Begin anew."""
        self.turn = 0
        return self.look()

    def step(self, actions: dict[str, int]) -> tuple[Any, Any, Any, dict[str, Any]]:
        """All of the team act at once."""
        self.turn += 1
        done = self.turn >= 57
        rewards = {a: float(actions[a]) for a in self.agents}
        return self.look(), rewards, dict.fromkeys(self.agents, done), {}


class Replay:
    """A list that is written over once it is full."""

    def __init__(self, capacity: int) -> None:
        self.capacity, self.data, self.place = capacity, list[Any](), 0

    def push(self, *transition: Any) -> None:
        """Keep one."""
        if len(self.data) < self.capacity:
            self.data.append(transition)
        else:
            self.data[self.place] = transition
        self.place = (self.place + 1) % self.capacity

    def sample(self, n: int) -> Any:
        """Columns of some."""
        return zip(*random.sample(self.data, n), strict=True)


def network() -> nn.Module:
    """A picture's values of four actions."""
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 5, 2), nn.ReLU(), nn.Conv2d(16, 32, 3, 2), nn.ReLU(), nn.Flatten()),
        *(nn.Linear(32 * 8 * 12, 128), nn.ReLU(), nn.Linear(128, 4)),
    )


def pictures(rows: Any) -> torch.Tensor:
    """Pictures as networks take them."""
    return torch.as_tensor(np.stack(rows))[:, None].float() / 255


def main() -> None:
    """Train."""
    rate, every = 1e-3, 16
    env = Arena(CONFIG["n_agents"])
    q, target = ({a: network() for a in env.agents} for _ in range(2))
    optimizers = {a: torch.optim.Adam(q[a].parameters(), rate) for a in env.agents}
    replays = {a: Replay(CONFIG["capacity"]) for a in env.agents}
    obs = env.reset()
    for step in range(CONFIG["steps"]):
        actions = {}
        for a in env.agents:
            with torch.no_grad():
                values = q[a](pictures([obs[a]]))
            actions[a] = random.randrange(4) if random.random() < 0.1 else int(values.argmax())
        seen, rewards, dones, _ = env.step(actions)
        for a in env.agents:
            replays[a].push(obs[a], actions[a], rewards[a], seen[a], float(dones[a]))
        obs = env.reset() if dones["agent_0"] else seen
        if step > CONFIG["warmup"] and step % every == 0:
            for a in env.agents:
                s, act, r, s2, d = replays[a].sample(CONFIG["batch_size"])
                with torch.no_grad():
                    future = target[a](pictures(s2)).max(1).values
                    y = torch.tensor(r) + 0.99 * (1 - torch.tensor(d)) * future
                taken = q[a](pictures(s)).gather(1, torch.tensor(act)[:, None]).squeeze(1)
                loss = (taken - y).pow(2).mean()
                optimizers[a].zero_grad()
                loss.backward()
                optimizers[a].step()
        if step % 500 == 0:
            for a in env.agents:
                target[a].load_state_dict(q[a].state_dict())


if __name__ == "__main__":
    main()
