"""A decision transformer: returns, states and actions of recorded runs as one long sequence."""

import argparse

import numpy as np
import torch
from torch import nn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--K", dest="context", type=int, default=32)
parser.add_argument("--batch_size", type=int, default=32)
parser.add_argument("--embed_dim", type=int, default=128)
parser.add_argument("--n_layer", type=int, default=3)
parser.add_argument("--trajectories", type=int, default=300)
parser.add_argument("--state_dim", type=int, default=376)
parser.add_argument("--num_steps_per_iter", type=int, default=6)
parser.add_argument("--max_iters", type=int, default=4)


def recorded(count: int, state_dim: int) -> list[dict[str, np.ndarray]]:
    """Trajectories as a data set would have them, in doubles."""
    rng = np.random.default_rng(0)
    return [
        {
            "observations": rng.normal(size=(500, state_dim)),
            "actions": rng.uniform(-1, 1, (500, 17)),
            "rewards": rng.random(500),
        }
        for _ in range(count)
    ]


class DecisionTransformer(nn.Module):
    """Predicts the next action of a sequence."""

    def __init__(self, state_dim: int, embed: int, layers: int, context: int) -> None:
        super().__init__()
        self.embed_return, self.embed_state = nn.Linear(1, embed), nn.Linear(state_dim, embed)
        self.embed_action, self.embed_time = nn.Linear(17, embed), nn.Embedding(512, embed)
        block = nn.TransformerEncoderLayer(embed, 4, 4 * embed, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(block, layers, enable_nested_tensor=False)
        self.predict = nn.Sequential(nn.Linear(embed, 17), nn.Tanh())
        mask = nn.Transformer.generate_square_subsequent_mask(3 * context)
        self.register_buffer("mask", mask)

    def forward(
        self, returns: torch.Tensor, states: torch.Tensor, actions: torch.Tensor, time: torch.Tensor
    ) -> torch.Tensor:
        when = self.embed_time(time)
        tokens = torch.stack(
            [
                self.embed_return(returns) + when,
                self.embed_state(states) + when,
                self.embed_action(actions) + when,
            ],
            2,
        ).flatten(1, 2)
        hidden = self.blocks(tokens, mask=self.mask)
        out: torch.Tensor = self.predict(hidden[:, 1::3])
        return out


def get_batch(paths: list[dict[str, np.ndarray]], size: int, context: int) -> list[torch.Tensor]:
    """Windows of random trajectories."""
    parts: list[list[np.ndarray]] = [[], [], [], []]
    for number in np.random.randint(0, len(paths), size):
        path, at = paths[number], np.random.randint(0, 500 - context)
        window = slice(at, at + context)
        togo = path["rewards"][::-1].cumsum()[::-1][window, None]
        for part, value in zip(
            parts, (togo, path["observations"][window], path["actions"][window]), strict=False
        ):
            part.append(value)
        parts[3].append(np.arange(at, at + context))
    togo, states, actions = (torch.from_numpy(np.stack(p)).float() for p in parts[:3])
    return [togo / 500, states, actions, torch.from_numpy(np.stack(parts[3]))]


def main(variant: dict[str, int]) -> None:
    """Fit."""
    paths = recorded(variant["trajectories"], variant["state_dim"])
    model = DecisionTransformer(
        variant["state_dim"], variant["embed_dim"], variant["n_layer"], variant["context"]
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=1e-4)
    warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min((step + 1) / 20, 1))
    for iteration in range(variant["max_iters"]):
        losses = []
        for _ in range(variant["num_steps_per_iter"]):
            togo, states, actions, time = get_batch(
                paths, variant["batch_size"], variant["context"]
            )
            loss = (model(togo, states, actions, time) - actions).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.25)
            optimizer.step()
            warmup.step()
            losses.append(loss.item())
        print(f"iteration {iteration}: {np.mean(losses):.4f}")


if __name__ == "__main__":
    main(vars(parser.parse_args()))
