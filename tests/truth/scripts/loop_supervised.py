"""A training without any env: constants in capitals, batches of a data set in memory."""

import torch
from torch import nn

BATCH_SIZE = 512
HIDDEN = 512
SAMPLES = 8_000
FEATURES = 512
EPOCHS = 4

torch.manual_seed(0)
inputs = torch.randn(SAMPLES, FEATURES)
labels = torch.randint(0, 10, (SAMPLES,))
net = nn.Sequential(
    *(nn.Linear(FEATURES, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU()),
    nn.Linear(HIDDEN, 10),
)
optimizer = torch.optim.Adam(net.parameters())
for _ in range(EPOCHS):
    order = torch.randperm(SAMPLES)
    for start in range(0, SAMPLES, BATCH_SIZE):
        rows = order[start : start + BATCH_SIZE]
        loss = nn.functional.cross_entropy(net(inputs[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
