"""The cells of the notebook; ``python -m benchmarks.loops.notebook_cells`` writes it."""

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


if __name__ == "__main__":
    (SCRIPTS / "cross_entropy.ipynb").write_text(written(CELLS))
