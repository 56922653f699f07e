"""TRPO: the policy moves by conjugate gradients, only the value function has an optimizer."""

import argparse
from collections.abc import Callable

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.distributions import Normal, kl_divergence

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--batch-size", type=int, default=4_000)
parser.add_argument("--hidden", type=int, default=512)
parser.add_argument("--max-kl", type=float, default=1e-2)
parser.add_argument("--cg-steps", type=int, default=5)
parser.add_argument("--updates", type=int, default=3)


def conjugate_gradients(
    product: Callable[[torch.Tensor], torch.Tensor], b: torch.Tensor, steps: int
) -> torch.Tensor:
    """Solve without the matrix."""
    x, r, p = torch.zeros_like(b), b.clone(), b.clone()
    size = r @ r
    for _ in range(steps):
        applied = product(p)
        alpha = size / (p @ applied)
        x += alpha * p
        r -= alpha * applied
        following = r @ r
        p = r + following / size * p
        size = following
    return x


def main() -> None:
    """Train."""
    args = parser.parse_args()
    env = gym.make("Pendulum-v1")
    policy = nn.Sequential(
        nn.Linear(3, args.hidden), nn.Tanh(), nn.Linear(args.hidden, args.hidden), nn.Tanh(),
        nn.Linear(args.hidden, 1),
    )  # fmt: skip
    value = nn.Sequential(nn.Linear(3, args.hidden), nn.Tanh(), nn.Linear(args.hidden, 1))
    optimizer = torch.optim.LBFGS(value.parameters(), max_iter=5)
    parameters = list(policy.parameters())
    state, _ = env.reset(seed=1)
    for update in range(args.updates):
        memory: list[tuple[np.ndarray, np.ndarray, float, float]] = []
        for _ in range(args.batch_size):
            with torch.no_grad():
                action = Normal(policy(torch.from_numpy(state)), 0.5).sample().numpy()
            following, reward, terminated, truncated, _ = env.step(action)
            memory.append((state, action, float(reward), 1.0 - truncated))
            state = env.reset()[0] if terminated or truncated else following
        columns = [np.array(column, np.float32) for column in zip(*memory, strict=True)]
        states, actions, rewards, masks = (torch.from_numpy(column) for column in columns)
        returns, future = torch.zeros_like(rewards), torch.tensor(0.0)
        for t in reversed(range(args.batch_size)):
            future = rewards[t] + 0.99 * future * masks[t]
            returns[t] = future

        def value_loss(states: torch.Tensor = states, returns: torch.Tensor = returns) -> float:
            optimizer.zero_grad()
            loss = (value(states).squeeze(1) - returns).pow(2).mean()
            loss.backward()
            return float(loss)

        optimizer.step(value_loss)
        advantage = (returns - value(states).squeeze(1)).detach()
        old = Normal(policy(states).detach(), 0.5)
        old_logp = old.log_prob(actions).sum(1)

        def surrogate(
            states: torch.Tensor = states,
            actions: torch.Tensor = actions,
            old_logp: torch.Tensor = old_logp,
            advantage: torch.Tensor = advantage,
        ) -> torch.Tensor:
            logp = Normal(policy(states), 0.5).log_prob(actions).sum(1)
            gain: torch.Tensor = ((logp - old_logp).exp() * advantage).mean()
            return -gain

        gradient = torch.cat(
            [g.flatten() for g in torch.autograd.grad(surrogate(), parameters)]
        ).detach()

        def fisher(
            vector: torch.Tensor, states: torch.Tensor = states, old: Normal = old
        ) -> torch.Tensor:
            kl = kl_divergence(old, Normal(policy(states), 0.5)).mean()
            first = torch.autograd.grad(kl, parameters, create_graph=True)
            along = torch.cat([g.flatten() for g in first]) @ vector
            second = torch.autograd.grad(along, parameters)
            return torch.cat([g.flatten() for g in second]) + 0.1 * vector

        direction = conjugate_gradients(fisher, -gradient, args.cg_steps)
        length = (0.5 * (direction @ fisher(direction)) / args.max_kl).sqrt()
        before = nn.utils.parameters_to_vector(parameters).detach()
        for share in (1.0, 0.5, 0.25):
            nn.utils.vector_to_parameters(before + share * direction / length, parameters)
            with torch.no_grad():
                if surrogate() < 0:
                    break
        print(f"update {update}: {rewards.mean():.3f}")


if __name__ == "__main__":
    main()
