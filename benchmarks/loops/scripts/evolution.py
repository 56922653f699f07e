"""Evolution strategies: a population of disturbed weights, no optimizer and no gradient."""

import argparse

import gymnasium as gym
import torch
from torch import nn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--population", type=int, default=64)
parser.add_argument("--hidden", type=int, default=1024)
parser.add_argument("--generations", type=int, default=4)
parser.add_argument("--sigma", type=float, default=0.1)
parser.add_argument("--max-steps", type=int, default=60)


@torch.no_grad()
def fitness(policy: nn.Module, env_id: str, max_steps: int) -> float:
    """The return of one episode."""
    env = gym.make(env_id)
    total, (state, _) = 0.0, env.reset(seed=1)
    for _ in range(max_steps):
        action = int(policy(torch.from_numpy(state)).argmax())
        state, reward, terminated, truncated, _ = env.step(action)
        total += float(reward)
        if terminated or truncated:
            break
    env.close()
    return total


def main() -> None:
    """Evolve."""
    args = parser.parse_args()
    torch.manual_seed(0)
    policy = nn.Sequential(
        nn.Linear(4, args.hidden), nn.Tanh(), nn.Linear(args.hidden, args.hidden), nn.Tanh(),
        nn.Linear(args.hidden, 2),
    )  # fmt: skip
    mean = nn.utils.parameters_to_vector(policy.parameters()).detach()
    for generation in range(args.generations):
        noise = torch.randn(args.population, len(mean))
        scores = torch.zeros(args.population)
        for member in range(args.population):
            nn.utils.vector_to_parameters(mean + args.sigma * noise[member], policy.parameters())
            scores[member] = fitness(policy, "CartPole-v1", args.max_steps)
        ranks = scores.argsort().argsort().float() / (args.population - 1) - 0.5
        mean += 0.05 / (args.population * args.sigma) * (ranks @ noise)
        print(f"generation {generation}: best {scores.max():.0f}")


if __name__ == "__main__":
    main()
