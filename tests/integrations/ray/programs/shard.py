"""The drone's own program as one of several: before each step it averages gradients with them.

`python shard.py RANK NODES FILE ...` and the drone's arguments; FILE is where they meet.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import distributed
from torch.optim.optimizer import register_optimizer_step_pre_hook

from memfit.systems.drone.__main__ import arguments, run


def averaged(optimizer: Any, *args: Any) -> None:
    """Every gradient becomes the mean of those of all nodes, in one flat bucket as usual."""
    found = [
        p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None
    ]
    bucket = torch.cat([gradient.flatten() for gradient in found])
    distributed.all_reduce(bucket)
    bucket /= distributed.get_world_size()
    for gradient, mean in zip(found, bucket.split([g.numel() for g in found]), strict=True):
        gradient.copy_(mean.view_as(gradient))


if __name__ == "__main__":
    rank, nodes, place, *words = sys.argv[1:]
    distributed.init_process_group(
        "gloo", init_method=f"file://{place}", rank=int(rank), world_size=int(nodes)
    )
    register_optimizer_step_pre_hook(averaged)
    code = run(arguments(words))
    distributed.destroy_process_group()
    sys.exit(code)
