"""Behaviour cloning: a set of an expert's moves as one TensorDataset, fitted in large batches."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def expert_moves(count: int, features: int) -> TensorDataset:
    """Observations and what a linear expert would do."""
    generator = torch.Generator().manual_seed(0)
    observations = torch.rand((count, features), generator=generator)
    weights = torch.randn((features, 8), generator=generator)
    moves = (observations @ weights).argmax(1)
    return TensorDataset(observations, moves)


def evaluate(model: nn.Module, loader: DataLoader[tuple[torch.Tensor, ...]]) -> float:
    """The share of moves that are the expert's."""
    right = total = 0
    with torch.no_grad():
        for observations, moves in loader:
            right += int((model(observations).argmax(1) == moves).sum())
            total += len(moves)
    return right / max(1, total)


def main(args: argparse.Namespace) -> None:
    """Fit a network to the expert."""
    moves = expert_moves(args.samples, args.features)
    kept = args.samples // 10
    training, validation = random_split(moves, [args.samples - kept, kept])
    loader = DataLoader(training, batch_size=args.batch_size, shuffle=True, drop_last=True)
    test_loader = DataLoader(validation, batch_size=args.batch_size)
    model = nn.Sequential(
        nn.Linear(args.features, args.width), nn.GELU(), nn.LayerNorm(args.width),
        nn.Linear(args.width, args.width), nn.GELU(), nn.LayerNorm(args.width),
        nn.Linear(args.width, 8),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    for epoch in range(args.epochs):
        begin = time.time()
        for observations, expert in loader:
            loss = nn.functional.cross_entropy(model(observations), expert)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
        share = evaluate(model, test_loader)
        print(f"epoch {epoch}: {share:.1%} right, {time.time() - begin:.1f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=40_000)
    parser.add_argument("--features", type=int, default=4_096)
    parser.add_argument("--batch_size", type=int, default=2_048)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=0.05)
    main(parser.parse_args())
