"""Planning with an ensemble of models: many imagined action sequences at each step."""

import argparse

import gymnasium as gym
import numpy as np
import torch
from torch import nn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--ensemble", type=int, default=5)
parser.add_argument("--hidden", type=int, default=200)
parser.add_argument("--candidates", type=int, default=10_000)
parser.add_argument("--horizon", type=int, default=8)
parser.add_argument("--trials", type=int, default=3)
parser.add_argument("--trial-steps", type=int, default=2)
parser.add_argument("--random-steps", type=int, default=500)
parser.add_argument("--train-batch", type=int, default=256)


class Ensemble(nn.Module):
    """Several models as one batch of matrices."""

    def __init__(self, members: int, hidden: int) -> None:
        super().__init__()
        self.w1 = nn.Parameter(torch.randn(members, 4, hidden) / 2)
        self.w2 = nn.Parameter(torch.randn(members, hidden, hidden) / hidden**0.5)
        self.w3 = nn.Parameter(torch.randn(members, hidden, 3) / hidden**0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = nn.functional.silu(x @ self.w1)
        return nn.functional.silu(hidden @ self.w2) @ self.w3


@torch.no_grad()
def plan(model: Ensemble, state: np.ndarray, args: argparse.Namespace) -> np.ndarray:
    """The first action of the sequence that does best over all members."""
    sequences = torch.rand(args.horizon, args.candidates, 1) * 4 - 2
    states = torch.from_numpy(state).expand(args.ensemble, args.candidates, 3)
    cost = torch.zeros(args.ensemble, args.candidates)
    for actions in sequences:
        pairs = torch.cat([states, actions.expand(args.ensemble, -1, -1)], -1)
        states = states + model(pairs)
        cost += (1 - states[..., 0]).square() + 0.1 * states[..., 2].square()
    best: np.ndarray = sequences[0, cost.mean(0).argmin()].numpy()
    return best


def main() -> None:
    """Act, learn, repeat."""
    args = parser.parse_args()
    env = gym.make("Pendulum-v1")
    model = Ensemble(args.ensemble, args.hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    pairs: list[np.ndarray] = []
    changes: list[np.ndarray] = []

    def move(state: np.ndarray, action: np.ndarray) -> np.ndarray:
        following, _, _, truncated, _ = env.step(action)
        pairs.append(np.concatenate([state, action]).astype(np.float32))
        changes.append((following - state).astype(np.float32))
        return np.asarray(env.reset()[0] if truncated else following)

    state, _ = env.reset(seed=1)
    for _ in range(args.random_steps):
        state = move(state, env.action_space.sample())
    for trial in range(args.trials):
        inputs, targets = torch.tensor(np.array(pairs)), torch.tensor(np.array(changes))
        for _ in range(20):
            rows = torch.randint(0, len(inputs), (args.ensemble, args.train_batch))
            loss = (model(inputs[rows]) - targets[rows]).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        for _ in range(args.trial_steps):
            state = move(state, plan(model, state, args))
        print(f"trial {trial}: model loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
