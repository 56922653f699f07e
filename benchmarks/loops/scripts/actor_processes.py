"""Actors in processes of their own write rollouts into shared tensors; one learner reads them."""

import argparse
from typing import Any

import gymnasium as gym
import torch
from torch import multiprocessing as mp
from torch import nn


class ActorCritic(nn.Module):
    """A small network whose weights are in shared memory."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(6, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.policy, self.baseline = nn.Linear(width, 3), nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = self.body(x)
        return self.policy(hidden), self.baseline(hidden).squeeze(-1)


def act(number: int, model: ActorCritic, buffers: Any, free: Any, full: Any) -> None:
    """One actor: fill buffers until told to end."""
    torch.set_num_threads(1)
    env = gym.make("Acrobot-v1")
    state, _ = env.reset(seed=number)
    while (index := free.get()) is not None:
        for t in range(len(buffers["obs"][index])):
            seen = torch.from_numpy(state)
            with torch.no_grad():
                logits, _ = model(seen)
            action = int(torch.distributions.Categorical(logits=logits).sample())
            state, reward, terminated, truncated, _ = env.step(action)
            buffers["obs"][index][t], buffers["action"][index][t] = seen, action
            buffers["reward"][index][t] = float(reward)
            buffers["logits"][index][t] = logits
            buffers["frames"][index][t] = number
            if terminated or truncated:
                state, _ = env.reset()
        full.put(index)


def main() -> None:
    """Start the actors and learn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-actors", type=int, default=3)
    parser.add_argument("--num-buffers", type=int, default=32)
    parser.add_argument("--unroll-length", type=int, default=80)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--frame-size", type=int, default=20_000)
    parser.add_argument("--updates", type=int, default=10)
    flags = parser.parse_args()
    size = (flags.num_buffers, flags.unroll_length)
    buffers = {
        "obs": torch.zeros(*size, 6).share_memory_(),
        "action": torch.zeros(size, dtype=torch.int64).share_memory_(),
        "reward": torch.zeros(size).share_memory_(),
        "logits": torch.zeros(*size, 3).share_memory_(),
        "frames": torch.zeros(*size, flags.frame_size, dtype=torch.uint8).share_memory_(),
    }
    model, learner = ActorCritic(256), ActorCritic(256)
    model.share_memory()
    optimizer = torch.optim.RMSprop(learner.parameters(), lr=1e-3)
    context = mp.get_context("fork")
    free, full = context.SimpleQueue(), context.SimpleQueue()
    for index in range(flags.num_buffers):
        free.put(index)
    actors = [
        context.Process(target=act, args=(number, model, buffers, free, full), daemon=True)
        for number in range(flags.num_actors)
    ]
    for actor in actors:
        actor.start()
    for update in range(flags.updates):
        rows = [full.get() for _ in range(flags.batch_size)]
        batch = {
            name: torch.stack([buffer[row] for row in rows]) for name, buffer in buffers.items()
        }
        pictures = batch["frames"].float() / 255  # what a network of pictures would read
        for row in rows:
            free.put(row)
        logits, baseline = learner(batch["obs"])
        returns = batch["reward"].flip(1).cumsum(1).flip(1) + 0 * pictures.mean(2)
        logp = logits.log_softmax(-1).gather(-1, batch["action"].unsqueeze(-1)).squeeze(-1)
        old = batch["logits"].log_softmax(-1)
        rho = (logp - old.gather(-1, batch["action"].unsqueeze(-1)).squeeze(-1)).exp().clamp(max=1)
        advantage = (returns - baseline).detach()
        loss = 0.5 * (returns - baseline).pow(2).mean() - (rho.detach() * advantage * logp).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.load_state_dict(learner.state_dict())
        print(f"update {update}: loss {loss.item():.2f}")
    for _ in actors:
        free.put(None)
    for actor in actors:
        actor.join(timeout=5)
        actor.terminate()


if __name__ == "__main__":
    main()
