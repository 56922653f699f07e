"""REINFORCE in a file of its own: episodes in lists, one large update for sixteen of them."""

import numpy as np
import torch
from torch.nn import functional
from worlds import Readings

HIDDEN = 1500
EPISODES_PER_UPDATE = 16

env = Readings(700)
policy = torch.nn.Sequential(
    torch.nn.Linear(700, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, 3)
)
optimizer = torch.optim.RMSprop(policy.parameters(), lr=1e-3)
for _update in range(500):
    seen, done, returns = [], [], []
    for _ in range(EPISODES_PER_UPDATE):
        observation, _ = env.reset()
        rewards, over = [], False
        while not over:
            with torch.no_grad():
                logits = policy(torch.from_numpy(observation))
            action = torch.multinomial(functional.softmax(logits, dim=-1), 1).item()
            seen.append(observation)
            done.append(action)
            observation, reward, terminated, truncated, _ = env.step(action)
            rewards.append(reward)
            over = terminated or truncated
        returns += list(np.cumsum(rewards[::-1])[::-1])
    batch = torch.from_numpy(np.stack(seen))
    chosen = functional.log_softmax(policy(batch), dim=-1)[
        torch.arange(len(done)), torch.tensor(done)
    ]
    loss = -(chosen * torch.tensor(returns, dtype=torch.float32)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
