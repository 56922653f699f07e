"""Actor-critic in a `while True` with a global step that ends it; settings in one dictionary."""

import sys

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.distributions import Normal

CONFIG = {
    "num_envs": 32,
    "horizon": 128,
    "minibatch": 1024,
    "width": 400,
    "max_steps": 20_480,
}
for word in sys.argv[1:]:  # such as num_envs=64
    key, equals, number = word.partition("=")
    CONFIG[key] = int(number)


def layers(inputs: int, outputs: int) -> nn.Sequential:
    """A network."""
    width = CONFIG["width"]
    return nn.Sequential(
        nn.Linear(inputs, width), nn.ELU(), nn.Linear(width, width), nn.ELU(),
        nn.Linear(width, outputs),
    )  # fmt: skip


envs = gym.make_vec("MountainCarContinuous-v0", num_envs=CONFIG["num_envs"])
policy, value = layers(2, 1), layers(2, 1)
log_std = nn.Parameter(torch.zeros(1))
optimizer = torch.optim.AdamW([*policy.parameters(), *value.parameters(), log_std], lr=1e-3)
global_step = 0
buffer: dict[str, list[torch.Tensor]] = {"obs": [], "act": [], "logp": [], "rew": []}
obs = torch.from_numpy(envs.reset(seed=0)[0])

while True:
    with torch.no_grad():
        chances = Normal(policy(obs), log_std.exp())
        action = chances.sample()
    seen, reward, terminated, truncated, infos = envs.step(action.numpy())
    buffer["obs"].append(obs)
    buffer["act"].append(action)
    buffer["logp"].append(chances.log_prob(action).sum(-1))
    buffer["rew"].append(torch.as_tensor(reward, dtype=torch.float32))
    obs = torch.from_numpy(seen)
    global_step += CONFIG["num_envs"]
    if len(buffer["obs"]) == CONFIG["horizon"]:
        data = {name: torch.cat(parts) for name, parts in buffer.items()}
        returns = data["rew"] - data["rew"].mean()
        for rows in torch.randperm(len(returns)).split(CONFIG["minibatch"]):
            chances = Normal(policy(data["obs"][rows]), log_std.exp())
            ratio = (chances.log_prob(data["act"][rows]).sum(-1) - data["logp"][rows]).exp()
            baseline = value(data["obs"][rows]).squeeze(-1)
            advantage = returns[rows] - baseline.detach()
            loss = (baseline - returns[rows]).pow(2).mean()
            loss = loss - torch.min(advantage * ratio, advantage * ratio.clamp(0.8, 1.2)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        buffer = {name: [] for name in buffer}
        print(f"{global_step}: {float(np.mean(reward)):.3f}")
    if global_step >= CONFIG["max_steps"]:
        break
envs.close()
