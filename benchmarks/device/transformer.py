"""The transformer whose real trainings were recorded, written anew from its description.

24 layers of 1,024, 16 heads, SwiGLU of 4,096, RMSNorm, rotary positions, 10,000 words, batch of 4,
AdamW by hand, one parameter at a time. Which of the recordings were made in mixed precision is not
said with them; their requests show it (halves of sizes, and copies of weights before each product).
"""

from __future__ import annotations

import math
from contextlib import nullcontext

import torch
from benchmarks.device.autocast import CardAutocast
from benchmarks.device.simulate import Predicted, after_updates
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

VOCABULARY, WIDE, INNER, LAYERS, HEADS, BATCH = 10_000, 1024, 4096, 24, 16, 4
MIXED = {128: True, 256: False, 512: True, 1024: True}


class Norm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDE))

    def forward(self, x: Tensor) -> Tensor:
        found = x.to(torch.float32)
        rms = torch.sqrt(torch.mean(found**2, dim=-1, keepdim=True) + 1e-5)
        return (found / rms * self.weight).to(x.dtype)


class Linear(nn.Module):
    def __init__(self, given: int, made: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(made, given))

    def forward(self, x: Tensor) -> Tensor:
        return torch.einsum("...i,oi->...o", x, self.weight)


class Layer(nn.Module):
    def __init__(self, cos: Tensor, sin: Tensor) -> None:
        super().__init__()
        self.cos, self.sin = cos, sin
        self.before, self.within = Norm(), Norm()
        self.q, self.k, self.v, self.out = (Linear(WIDE, WIDE) for _ in range(4))
        self.gate, self.up, self.down = (
            Linear(WIDE, INNER),
            Linear(WIDE, INNER),
            Linear(INNER, WIDE),
        )

    def _turned(self, x: Tensor) -> Tensor:
        even, odd = x[..., 0::2], x[..., 1::2]
        both = (even * self.cos - odd * self.sin, even * self.sin + odd * self.cos)
        return torch.stack(both, -1).flatten(-2)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        normed = self.before(x)
        batch, length, _ = normed.shape
        q, k, v = (
            part(normed).view(batch, length, HEADS, WIDE // HEADS).transpose(1, 2)
            for part in (self.q, self.k, self.v)
        )
        q, k = self._turned(q), self._turned(k)
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(WIDE // HEADS)
        scores = torch.where(mask, scores, float("-inf"))
        scores = scores - scores.max(-1, keepdim=True)[0]
        raised = torch.exp(scores)
        weights = raised / raised.sum(-1, keepdim=True)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, WIDE))
        normed = self.within(x)
        gate = self.gate(normed)
        wide = gate * torch.sigmoid(gate) * self.up(normed)
        down: Tensor = self.down(wide)
        return x + down


class Transformer(nn.Module):
    def __init__(self, length: int) -> None:
        super().__init__()
        self.words = nn.Parameter(torch.empty(VOCABULARY, WIDE))
        for name in ("cos", "sin"):
            self.register_buffer(name, torch.empty(length, WIDE // HEADS // 2))
        tables = [table for _, table in self.named_buffers()]
        self.layers = nn.ModuleList(Layer(*tables) for _ in range(LAYERS))
        self.last, self.out = Norm(), Linear(WIDE, VOCABULARY)

    def forward(self, given: Tensor) -> Tensor:
        length = given.shape[1]
        mask = torch.tril(torch.ones(length, length, dtype=torch.bool))
        x = self.words[given]
        for layer in self.layers:
            x = layer(x, mask)
        found: Tensor = self.out(self.last(x))
        return found


def cross_entropy(scores: Tensor, wanted: Tensor) -> Tensor:
    scores = scores - scores.max(-1, keepdim=True)[0]
    known = scores.gather(-1, wanted.unsqueeze(-1)).squeeze(-1)
    return (torch.log(torch.exp(scores).sum(-1)) - known).mean()


def trained(length: int) -> Predicted:
    """Some updates of it, with tensors that have no data."""
    with FakeTensorMode(allow_non_fake_inputs=True), CardAutocast():
        model = Transformer(length)
        parameters = list(model.parameters())
        state = [(torch.zeros_like(p), torch.zeros_like(p)) for p in parameters]
        given, wanted = (torch.ones(BATCH, length, dtype=torch.long) for _ in range(2))

        def update() -> None:
            for p in parameters:
                p.grad = None
            with torch.autocast("cpu", torch.bfloat16) if MIXED[length] else nullcontext():
                loss = cross_entropy(model(given).flatten(0, 1), wanted.flatten())
            loss.backward()
            with torch.no_grad():
                for p, (first, second) in zip(parameters, state, strict=True):
                    assert p.grad is not None
                    first.mul_(0.9).add_(p.grad, alpha=0.1)
                    second.mul_(0.999).add_(p.grad * p.grad, alpha=0.001)
                    p.sub_(1e-3 * first / (torch.sqrt(second) + 1e-8))
                    p.sub_(1e-4 * p)

        held = [*parameters, *(t for pair in state for t in pair), *model.buffers(), given, wanted]
        return after_updates(update, held, times=2)
