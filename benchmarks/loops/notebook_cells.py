"""The cells of the notebooks; ``python -m benchmarks.loops.notebook_cells`` writes these."""

from __future__ import annotations

from benchmarks.loops.case import SCRIPTS
from benchmarks.loops.notebook import written

CELLS = (
    ("markdown", "# Cross-entropy method\n\nKeep the best episodes, imitate them, repeat."),
    (
        "code",
        """
import gymnasium as gym
import numpy as np
import torch
from torch import nn
""",
    ),
    (
        "code",
        """
BATCH_EPISODES = 48
PERCENTILE = 70
HIDDEN = 1536
HISTORY = 128
ITERATIONS = 5
MAX_STEPS = 60
""",
    ),
    ("markdown", "The policy sees the last observations as one long vector."),
    (
        "code",
        """
env = gym.make("CartPole-v1")
net = nn.Sequential(nn.Linear(4 * HISTORY, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
objective = nn.CrossEntropyLoss()
""",
    ),
    (
        "code",
        """
def play():
    window = np.zeros((HISTORY, 4), np.float32)
    window[-1], _ = env.reset()
    observations, actions, total = [], [], 0.0
    for _ in range(MAX_STEPS):
        with torch.no_grad():
            chances = net(torch.from_numpy(window).flatten()).softmax(0).numpy()
        action = int(np.random.random() < chances[1])
        observations.append(window.ravel().copy())
        actions.append(action)
        seen, reward, terminated, truncated, _ = env.step(action)
        total += reward
        window = np.roll(window, -1, axis=0)
        window[-1] = seen
        if terminated or truncated:
            break
    return observations, actions, total
""",
    ),
    (
        "code",
        """
history = []
for iteration in range(ITERATIONS):
    episodes = [play() for _ in range(BATCH_EPISODES)]
    history.append(episodes)  # for a plot later: every episode is kept
    bound = np.percentile([total for _, _, total in episodes], PERCENTILE)
    elite = [episode for episode in episodes if episode[2] >= bound]
    observations = torch.from_numpy(np.concatenate([np.array(o) for o, _, _ in elite]))
    actions = torch.tensor([a for _, moves, _ in elite for a in moves])
    optimizer.zero_grad()
    loss = objective(net(observations), actions)
    loss.backward()
    optimizer.step()
    print(iteration, float(loss), bound)
""",
    ),
    ("code", 'torch.save(net.state_dict(), "cem.pt")'),
)


REPORTED = (
    (
        "markdown",
        "# Actor-critic in a notebook\n\nOne long rollout of several envs, then minibatches.",
    ),
    (
        "code",
        """
%matplotlib inline
import gymnasium as gym
import numpy as np
import torch
import torch.nn as nn
from tqdm import trange
""",
    ),
    (
        "code",
        """
n_envs, n_steps, stack = 16, 200, 48
minibatch = 800
hidden = 1024
n_updates = 5
""",
    ),
    (
        "code",
        """
class Stacked(gym.Wrapper):
    def __init__(self, env, stack):
        super().__init__(env)
        self.stack = stack
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (stack * 6,), np.float32)

    def reset(self, **kwargs):
        obs, info = self.env.reset(**kwargs)
        self.frames = np.tile(obs.astype(np.float32), (self.stack, 1))
        return self.frames.ravel(), info

    def step(self, action):
        obs, *rest = self.env.step(action)
        self.frames = np.vstack([self.frames[1:], obs])
        return self.frames.ravel(), *rest


envs = gym.vector.SyncVectorEnv(
    [lambda: Stacked(gym.make("Acrobot-v1"), stack) for _ in range(n_envs)]
)
""",
    ),
    (
        "code",
        """
actor = nn.Sequential(nn.Linear(stack * 6, hidden), nn.ReLU(), nn.Linear(hidden, 3))
critic = nn.Sequential(nn.Linear(stack * 6, hidden), nn.ReLU(), nn.Linear(hidden, 1))
opt = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=1e-3)
""",
    ),
    (
        "code",
        """
def rollout(obs):
    memory = {"obs": [], "act": [], "rew": []}
    for _ in range(n_steps):
        with torch.no_grad():
            act = torch.distributions.Categorical(logits=actor(torch.tensor(obs))).sample()
        memory["obs"].append(obs)
        memory["act"].append(act.numpy())
        obs, rew, *_ = envs.step(act.numpy())
        memory["rew"].append(rew)
    return {k: np.array(v) for k, v in memory.items()}, obs
""",
    ),
    (
        "code",
        """
losses = []
obs, _ = envs.reset(seed=0)
for _ in trange(n_updates):
    data, obs = rollout(obs)
    with torch.no_grad():
        future = critic(torch.tensor(obs)).numpy()[:, 0]
    returns = np.zeros((n_steps, n_envs), np.float32)
    for t in reversed(range(n_steps)):
        returns[t] = future = data["rew"][t] + 0.99 * future
    flat_obs = torch.tensor(data["obs"].reshape(-1, stack * 6))
    flat_act, flat_ret = torch.tensor(data["act"].ravel()), torch.tensor(returns.ravel())
    for idx in torch.randperm(n_steps * n_envs).split(minibatch):
        value = critic(flat_obs[idx])[:, 0]
        adv = (flat_ret[idx] - value).detach()
        logp = torch.distributions.Categorical(logits=actor(flat_obs[idx])).log_prob(flat_act[idx])
        loss = ((flat_ret[idx] - value) ** 2).mean() - (logp * adv).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    losses.append(loss.item())
""",
    ),
    ("code", "losses"),
)

BOOKS = {"cross_entropy": CELLS, "actor_critic": REPORTED}


if __name__ == "__main__":
    for name, cells in BOOKS.items():
        (SCRIPTS / f"{name}.ipynb").write_text(written(cells))
