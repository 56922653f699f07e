"""PPO with settings in small letters, several in one line."""

import numpy as np
import torch
from torch import nn
from torch.distributions import Normal

rate, batch, gamma = 3e-4, 512, 0.99
n_envs, horizon = 32, 128
sensors, motors, hidden = 900, 6, 256
updates, epochs = 5, 2


class Worlds:
    """Many small worlds, in numpy."""

    def __init__(self, n: int) -> None:
        self.state, self.age = np.zeros((n, sensors), np.float32), np.zeros(n, int)
        self.rng = np.random.default_rng(0)

    def reset(self) -> np.ndarray:
        """Begin anew."""
        self.state[:] = self.rng.normal(size=self.state.shape)
        return self.state.copy()

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict]:
        """One step of all."""
        noise = self.rng.normal(size=self.state.shape).astype(np.float32)
        self.state = 0.9 * self.state + 0.1 * noise
        self.age += 1
        done = self.age >= 100
        self.age[done] = 0
        return self.state.copy(), -np.abs(actions).sum(1), done, {}


def network(outputs: int) -> nn.Sequential:
    """Sensors to some numbers."""
    return nn.Sequential(nn.Linear(sensors, hidden), nn.Tanh(), nn.Linear(hidden, outputs))


env, actor, critic = Worlds(n_envs), network(motors), network(1)
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=rate)
obs, actions = torch.zeros(horizon, n_envs, sensors), torch.zeros(horizon, n_envs, motors)
logprobs, rewards, values = torch.zeros(3, horizon, n_envs)
seen = torch.as_tensor(env.reset())
for update in range(updates):
    for t in range(horizon):
        with torch.no_grad():
            policy = Normal(actor(seen), 1.0)
            obs[t], actions[t], values[t] = seen, policy.sample(), critic(seen).squeeze(-1)
            logprobs[t] = policy.log_prob(actions[t]).sum(-1)
        after, reward, done, _ = env.step(actions[t].numpy())
        seen, rewards[t] = torch.as_tensor(after), torch.as_tensor(reward)
    returns, future = torch.zeros_like(rewards), values[-1]
    for t in reversed(range(horizon)):
        future = rewards[t] + gamma * future
        returns[t] = future
    flat = obs.flatten(0, 1), actions.flatten(0, 1), logprobs.flatten(), returns.flatten()
    for _ in range(epochs):
        for rows in torch.randperm(len(flat[0])).split(batch):
            x, a, old, target = (part[rows] for part in flat)
            ratio = (Normal(actor(x), 1.0).log_prob(a).sum(-1) - old).exp()
            advantage = target - critic(x).squeeze(-1)
            loss = -(ratio.clamp(0.8, 1.2) * advantage.detach()).mean() + advantage.pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"update {update}: {rewards.mean():.3f}")
