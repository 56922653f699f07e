"""Two networks, their gradients and Adam's state."""

import torch
from wait import ready

actor = torch.nn.Sequential(torch.nn.Linear(71, 2048), torch.nn.Tanh(), torch.nn.Linear(2048, 2048))
optimizer = torch.optim.Adam(actor.parameters())
actor(torch.randn(64, 71)).pow(2).mean().backward()
optimizer.step()
ready()
