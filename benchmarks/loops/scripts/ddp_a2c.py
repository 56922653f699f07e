"""A2C in several equal processes that torchrun starts and whose gradients are averaged."""

import argparse
import os

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Cells:
    """Many little envs: find the brightest of some cells."""

    def __init__(self, n: int, cells: int, seed: int) -> None:
        self.n, self.cells, self.rng = n, cells, np.random.default_rng(seed)
        self.action_space = range(16)

    def reset(self) -> np.ndarray:
        self.now = self.rng.random((self.n, self.cells), np.float32)
        return self.now

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict]:
        reward = self.now[np.arange(self.n), actions]
        return self.reset(), reward, self.rng.random(self.n) < 0.02, {}


class Policy(nn.Module):
    def __init__(self, cells: int, width: int) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(cells, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.logits, self.value = nn.Linear(width, 16), nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = self.trunk(x)
        return self.logits(h), self.value(h).squeeze(-1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--local-num-envs", type=int, default=96)
    parser.add_argument("--rollout", type=int, default=32)
    parser.add_argument("--cells", type=int, default=4000)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--updates", type=int, default=20)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.manual_seed(rank)
    torch.set_num_threads(1)
    envs = Cells(args.local_num_envs, args.cells, rank)
    policy = DistributedDataParallel(Policy(args.cells, args.width))
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)
    observations = torch.zeros(args.rollout, args.local_num_envs, args.cells)
    state = torch.from_numpy(envs.reset())
    for update in range(args.updates):
        actions, rewards, masks = [], [], []
        for t in range(args.rollout):
            observations[t] = state
            with torch.no_grad():
                logits, _ = policy.module(state)
            action = torch.distributions.Categorical(logits=logits).sample()
            obs, reward, done, _ = envs.step(action.numpy())
            actions.append(action)
            rewards.append(torch.from_numpy(reward))
            masks.append(torch.from_numpy(1.0 - done.astype(np.float32)))
            state = torch.from_numpy(obs)
        with torch.no_grad():
            ret = policy.module(state)[1]
        returns = []
        for reward, mask in zip(reversed(rewards), reversed(masks), strict=True):
            ret = reward + 0.99 * mask * ret
            returns.append(ret)
        logits, values = policy(observations.flatten(0, 1))
        advantages = torch.cat(returns[::-1]) - values
        chances = torch.distributions.Categorical(logits=logits)
        chosen = chances.log_prob(torch.cat(actions))
        loss = advantages.pow(2).mean() - (chosen * advantages.detach()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and update % 5 == 0:
            print(f"update {update}: loss {loss.item():.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
