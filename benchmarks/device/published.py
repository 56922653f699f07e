"""Runs on real cards: published ones of others, and recorded ones; what was measured is theirs."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from memfit.formulas.device_rows import CUDA_CONTEXT

DATA = [above / "shared" / "data" / "device" for above in Path(__file__).parents[2:]]
_ANCHORS = ("xmem", "dnnmem", "schedtune", "llmem")
_PICTURE = 86
_TOKENS = 128


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run: what is known of it, and how it is predicted."""

    name: str
    facts: dict[str, Any]
    predict: Callable[[], Any]


def published() -> Iterator[Run]:
    """The sample of runs that was published with xMem."""
    for path in (folder / "xmem.csv" for folder in DATA):
        if not path.is_file():
            continue
        with path.open(encoding="utf-8") as file:
            for number, row in enumerate(csv.DictReader(file)):
                name = f"{number:02} {row['model']} {row['optimizer']} {row['batch_size']}"
                yield Run(name=name, facts=_facts(row), predict=partial(_published, row))


def _facts(row: dict[str, str]) -> dict[str, Any]:
    anchors: dict[str, Any] = {}
    for anchor in _ANCHORS:
        bytes_, oom = row[f"{anchor}_bytes"], row[f"{anchor}_oom"]
        anchors[anchor] = {
            "bytes": int(bytes_) if bytes_ else None,
            "fits": None if not oom else oom != "true",
        }
    return {
        "kind": row["kind"],
        "gpu": row["gpu"],
        "real": int(row["ground_bytes"]),
        "real_fits": row["real_oom"] != "true",
        "anchors": anchors,
    }


def _published(row: dict[str, str]) -> Any:
    import torch
    from benchmarks.device.language_models import language_model
    from benchmarks.device.networks import NETWORKS
    from benchmarks.device.simulate import supervised
    from torch import Tensor, nn

    batch, kept = int(row["batch_size"]), list[Any]()
    pictures = row["kind"] == "cnn"

    def inputs() -> tuple[Tensor, ...]:
        if pictures:
            shown = torch.empty(batch, 3, _PICTURE, _PICTURE)
            return shown, torch.empty(batch, dtype=torch.long)
        return tuple(torch.ones(batch, _TOKENS, dtype=torch.long) for _ in range(2))

    def loss(model: nn.Module, given: tuple[Tensor, ...]) -> Tensor:
        if pictures:
            out = model(given[0])
            kept[:] = [out]  # alive during the next forward pass
            return nn.functional.cross_entropy(out, given[1])
        found = model(input_ids=given[0], labels=given[1])
        kept[:] = [found]
        made: Tensor = found.loss
        return made

    zero_at = int(row["zero_grad_mode"]) if row["zero_grad_mode"] else None
    network = NETWORKS[row["model"]] if pictures else language_model(row["model"])
    capacity = int(row["total_gpu_memory_bytes"]) - CUDA_CONTEXT
    # A mask is looked into here, and not where a program is traced: tensors have no data.
    with patch("torch.jit.is_tracing", lambda: not pictures):
        return supervised(network, inputs, loss, row["optimizer"], zero_at, capacity)


def snapshots() -> Iterator[Run]:
    """Snapshots of a transformer's training."""
    for folder in DATA:
        for path in sorted(folder.glob("snapshot_medium_*_training.json.gz")):
            length = int(path.name.split("_")[2])
            found = json.loads(gzip.decompress(path.read_bytes()))
            facts = {
                "kind": "snapshot",
                "real": found["peak_allocated"],
                "real_reserved": found["peak_reserved"],
            }
            yield Run(
                name=f"transformer of 24 layers, context {length}",
                facts=facts,
                predict=partial(_transformer, length),
            )


def _transformer(length: int) -> Any:
    from benchmarks.device.transformer import trained

    return trained(length)
