"""PPO on a pool of envs behind make() and one step() for all, as with a native vector library."""

import time
from dataclasses import dataclass, fields
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical
from torch.nn import functional as F  # noqa: N812


@dataclass
class Args:
    env_id: str = "Radar-v0"
    seed: int = 1
    total_timesteps: int = 40960
    num_envs: int = 128
    num_steps: int = 64
    sweeps: int = 480
    minibatch_size: int = 1024
    update_epochs: int = 2
    learning_rate: float = 2.5e-4
    ent_coef: float = 0.01


class Pool:
    """Radars that turn until they see something; a finished one begins anew."""

    def __init__(self, num_envs: int, sweeps: int, seed: int) -> None:
        self.single_observation_space = gym.spaces.Box(-1, 1, (2, sweeps), np.float32)
        self.single_action_space = gym.spaces.Discrete(5)
        self.rng = np.random.default_rng(seed)
        self.shape = (num_envs, 2, sweeps)
        self.age = np.zeros(num_envs, np.int64)

    def reset(self) -> tuple[np.ndarray, dict[str, Any]]:
        self.age[:] = 0
        return self.look(), {}

    def look(self) -> np.ndarray:
        return self.rng.random(self.shape, np.float32) * 2 - 1

    def step(self, action: np.ndarray) -> tuple[np.ndarray, ...]:
        self.age += 1
        done = (self.rng.random(len(self.age)) < 0.01) | (self.age >= 200)
        info = {"elapsed_step": self.age.copy()}
        self.age[done] = 0
        reward = (action == 2).astype(np.float32)
        return self.look(), reward, done, np.zeros_like(done), info  # type: ignore[return-value]


def make(env_id: str, *, num_envs: int, sweeps: int, seed: int) -> Pool:
    assert env_id == "Radar-v0"
    return Pool(num_envs, sweeps, seed)


class Agent(nn.Module):
    def __init__(self, envs: Pool) -> None:
        super().__init__()
        channels, sweeps = envs.single_observation_space.shape
        self.network = nn.Sequential(
            nn.Conv1d(channels, 16, 8, stride=4),
            nn.ReLU(),
            nn.Conv1d(16, 32, 4, stride=2),
            nn.ReLU(),
            nn.Flatten(),
            nn.LazyLinear(256),
            nn.ReLU(),
        )
        self.network(torch.zeros(1, channels, sweeps))
        self.actor = nn.Linear(256, int(envs.single_action_space.n))
        self.critic = nn.Linear(256, 1)

    def get_value(self, x):  # type: ignore[no-untyped-def]
        return self.critic(self.network(x))

    def get_action_and_value(self, x, action=None):  # type: ignore[no-untyped-def]
        hidden = self.network(x)
        probs = Categorical(logits=self.actor(hidden))
        action = probs.sample() if action is None else action
        return action, probs.log_prob(action), probs.entropy(), self.critic(hidden)


def parse() -> Args:
    import argparse

    parser = argparse.ArgumentParser()
    for field in fields(Args):
        name = "--" + field.name.replace("_", "-")
        parser.add_argument(name, type=type(field.default), default=field.default)
    return Args(**vars(parser.parse_args()))


if __name__ == "__main__":
    args = parse()
    torch.manual_seed(args.seed)
    batch_size = args.num_envs * args.num_steps
    envs = make(args.env_id, num_envs=args.num_envs, sweeps=args.sweeps, seed=args.seed)
    agent = Agent(envs)
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)
    obs = torch.zeros((args.num_steps, args.num_envs, *envs.single_observation_space.shape))
    actions = torch.zeros((args.num_steps, args.num_envs))
    logprobs, rewards, dones, values = (torch.zeros_like(actions) for _ in range(4))

    global_step, start_time = 0, time.time()
    next_obs = torch.Tensor(envs.reset()[0])
    next_done = torch.zeros(args.num_envs)
    for _ in range(1, args.total_timesteps // batch_size + 1):
        for step in range(args.num_steps):
            global_step += args.num_envs
            obs[step], dones[step] = next_obs, next_done
            with torch.no_grad():
                action, logprob, _, value = agent.get_action_and_value(next_obs)
            values[step], actions[step], logprobs[step] = value.flatten(), action, logprob
            seen, reward, terminated, truncated, info = envs.step(action.numpy())
            rewards[step] = torch.tensor(reward)
            next_obs, next_done = torch.Tensor(seen), torch.Tensor(terminated | truncated)
        with torch.no_grad():
            advantages, last = torch.zeros_like(rewards), torch.zeros(args.num_envs)
            nextvalue, alive = agent.get_value(next_obs).flatten(), 1.0 - next_done
            for t in reversed(range(args.num_steps)):
                delta = rewards[t] + 0.99 * nextvalue * alive - values[t]
                advantages[t] = last = delta + 0.99 * 0.95 * alive * last
                nextvalue, alive = values[t], 1.0 - dones[t]
            returns = advantages + values
        b_obs = obs.reshape((-1, *envs.single_observation_space.shape))
        b_actions, b_logprobs = actions.reshape(-1), logprobs.reshape(-1)
        b_advantages, b_returns = advantages.reshape(-1), returns.reshape(-1)
        b_inds = np.arange(batch_size)
        for _ in range(args.update_epochs):
            np.random.shuffle(b_inds)
            for start in range(0, batch_size, args.minibatch_size):
                mb = b_inds[start : start + args.minibatch_size]
                _, newlogprob, entropy, newvalue = agent.get_action_and_value(
                    b_obs[mb], b_actions.long()[mb]
                )
                ratio = (newlogprob - b_logprobs[mb]).exp()
                adv = b_advantages[mb]
                pg_loss = torch.max(-adv * ratio, -adv * ratio.clamp(0.8, 1.2)).mean()
                v_loss = F.mse_loss(newvalue.view(-1), b_returns[mb])
                loss = pg_loss - args.ent_coef * entropy.mean() + 0.5 * v_loss
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
        print(f"{global_step} steps, {global_step / (time.time() - start_time):.0f} a second")
