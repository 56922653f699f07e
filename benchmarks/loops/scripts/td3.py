"""TD3 whose settings are constants in capitals: to change one, edit the file."""

import copy

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn

ENV_ID = "Pendulum-v1"
TOTAL_STEPS = 4_000
BUFFER_SIZE = 100_000
LEARNING_STARTS = 1_000
BATCH_SIZE = 512
TRAIN_EVERY = 60
POLICY_EVERY = 2
WIDTH = 1_024
TAU = 0.005
GAMMA = 0.99
NOISE = 0.2


def network(inputs: int, outputs: int) -> nn.Sequential:
    """Three layers."""
    return nn.Sequential(
        nn.Linear(inputs, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(),
        nn.Linear(WIDTH, outputs),
    )  # fmt: skip


def follow(target: nn.Module, source: nn.Module) -> None:
    """Let a target network follow slowly."""
    with torch.no_grad():
        for t, s in zip(target.parameters(), source.parameters(), strict=True):
            t.mul_(1 - TAU).add_(TAU * s)


env = gym.make(ENV_ID)
obs_dim = int(np.prod(env.observation_space.shape or ()))
act_dim = int(np.prod(env.action_space.shape or ()))
actor = nn.Sequential(network(obs_dim, act_dim), nn.Tanh())
q1, q2 = network(obs_dim + act_dim, 1), network(obs_dim + act_dim, 1)
actor_target, q1_target, q2_target = (copy.deepcopy(one) for one in (actor, q1, q2))
actor_optim = torch.optim.Adam(actor.parameters(), lr=3e-4)
critic_optim = torch.optim.Adam([*q1.parameters(), *q2.parameters()], lr=3e-4)

states = np.zeros((BUFFER_SIZE, obs_dim), np.float32)
next_states = np.zeros((BUFFER_SIZE, obs_dim), np.float32)
actions = np.zeros((BUFFER_SIZE, act_dim), np.float32)
rewards = np.zeros((BUFFER_SIZE, 1), np.float32)
size = updates = 0

state, _ = env.reset(seed=0)
for step in range(TOTAL_STEPS):
    if step < LEARNING_STARTS:
        action = np.random.uniform(-1, 1, act_dim)
    else:
        with torch.no_grad():
            action = actor(torch.as_tensor(state)).numpy()
        action = np.clip(action + np.random.normal(0, 0.1, act_dim), -1, 1)
    following, reward, terminated, truncated, _ = env.step(2 * action.astype(np.float32))
    states[size], next_states[size], actions[size] = state, following, action
    rewards[size] = reward
    size += 1
    state = env.reset()[0] if terminated or truncated else following
    if step < LEARNING_STARTS or step % TRAIN_EVERY:
        continue
    rows = np.random.randint(0, size, BATCH_SIZE)
    s, s2, a, r = (Tensor(array[rows]) for array in (states, next_states, actions, rewards))
    with torch.no_grad():
        noise = (torch.randn_like(a) * NOISE).clamp(-0.5, 0.5)
        a2 = (actor_target(s2) + noise).clamp(-1, 1)
        both = torch.cat([s2, a2], 1)
        y = r + GAMMA * torch.min(q1_target(both), q2_target(both))
    both = torch.cat([s, a], 1)
    critic_loss = (q1(both) - y).pow(2).mean() + (q2(both) - y).pow(2).mean()
    critic_optim.zero_grad()
    critic_loss.backward()
    critic_optim.step()
    updates += 1
    if updates % POLICY_EVERY == 0:
        actor_loss = -q1(torch.cat([s, actor(s)], 1)).mean()
        actor_optim.zero_grad()
        actor_loss.backward()
        actor_optim.step()
        follow(actor_target, actor)
        follow(q1_target, q1)
        follow(q2_target, q2)
    if step % 1000 == 0:
        print(f"step {step}: critic loss {critic_loss.item():.3f}")
env.close()
