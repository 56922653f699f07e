"""A3C: processes that train one network in shared memory, while the script waits for them."""

from __future__ import annotations

import argparse

import gymnasium as gym
import torch
import torch.multiprocessing as mp
from torch import nn


class ActorCritic(nn.Module):
    """A policy and a value."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.body = nn.Linear(4, hidden)
        self.policy, self.value = nn.Linear(hidden, 2), nn.Linear(hidden, 1)

    def forward(self, x):
        """Logits and value of an observation."""
        h = torch.tanh(self.body(x))
        return self.policy(h), self.value(h)


def work(rank, shared, counter, args):
    """Collect a few steps, and update the shared network, until all have made enough."""
    torch.manual_seed(rank)
    torch.set_num_threads(1)
    env, local = gym.make("CartPole-v1"), ActorCritic(args.hidden)
    optimizer = torch.optim.RMSprop(shared.parameters(), lr=1e-3)
    obs, _ = env.reset(seed=rank)
    while counter.value < args.total_steps:
        local.load_state_dict(shared.state_dict())
        kept = []
        for _ in range(args.unroll):
            logits, value = local(torch.as_tensor(obs))
            dist = torch.distributions.Categorical(logits=logits)
            act = dist.sample()
            obs, reward, term, trunc, _ = env.step(act.item())
            kept.append((dist.log_prob(act), value, reward))
            with counter.get_lock():
                counter.value += 1
            if term or trunc:
                obs, _ = env.reset()
                break
        ret, loss = 0.0, 0.0
        for logp, value, reward in reversed(kept):
            ret = reward + 0.99 * ret
            advantage = ret - value
            loss = loss - logp * advantage.detach() + 0.5 * advantage**2
        local.zero_grad()
        loss.backward()
        for mine, theirs in zip(local.parameters(), shared.parameters(), strict=True):
            theirs.grad = mine.grad
        optimizer.step()


def main():
    """Start the processes and wait for them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-workers", type=int, default=2)
    parser.add_argument("--unroll", type=int, default=20)
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--total-steps", type=int, default=6_000)
    args = parser.parse_args()
    mp.set_start_method("spawn")
    shared = ActorCritic(args.hidden).share_memory()
    counter = mp.Value("i", 0)
    workers = [
        mp.Process(target=work, args=(i, shared, counter, args)) for i in range(args.num_workers)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    main()
