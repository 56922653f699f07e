"""What a policy makes of observations with graphs: the usual features, and an average of the graph.

Every node and every edge is encoded by one layer, and the codes are averaged. As described, each
sample of a minibatch carries the whole graph. Made to fit, it carries the number of its level, and
each level in a minibatch is encoded once: the same features from the same weights.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, CombinedExtractor
from torch import nn

from memfit.systems.ninja.graph import GRAPH
from memfit.systems.ninja.level import shared_level
from memfit.systems.ninja.level_data import shared_graph
from memfit.systems.ninja.sizes import EDGE_FEATURES, NODE_FEATURES

NODE_CODE, EDGE_CODE = 32, 16
_ENCODED = ("graph_node_features", "graph_node_mask", "graph_edge_features", "graph_edge_mask")


class GraphFeatures(BaseFeaturesExtractor):
    """Features of pictures and states as usual, joined with the averaged codes of a graph."""

    def __init__(self, observation_space: spaces.Dict, levels: Sequence[str] = ()) -> None:
        parts = observation_space.spaces
        usual = spaces.Dict(
            {name: part for name, part in parts.items() if name not in GRAPH and name != "level"}
        )
        rest = CombinedExtractor(usual)
        super().__init__(observation_space, rest.features_dim + NODE_CODE + EDGE_CODE)
        self.rest = rest
        self.nodes = nn.Sequential(nn.Linear(NODE_FEATURES, NODE_CODE), nn.ReLU())
        self.edges = nn.Sequential(nn.Linear(EDGE_FEATURES, EDGE_CODE), nn.ReLU())
        self.levels = len(levels)
        for number, name in enumerate(levels):
            graph = shared_graph(shared_level(name))
            for part in _ENCODED:
                self.register_buffer(f"{part}_{number}", _shared(graph[part]), persistent=False)

    def forward(self, observations: dict[str, torch.Tensor]) -> torch.Tensor:
        """The features of a batch."""
        if "level" in observations:
            number = observations["level"].long().flatten()
            known, of_sample = torch.unique(number, return_inverse=True)
            codes = torch.stack([self._of_level(int(one)) for one in known])[of_sample]
        else:
            codes = self._encode(*(observations[part] for part in _ENCODED))
        return torch.cat((self.rest(observations), codes), dim=1)

    def _of_level(self, number: int) -> torch.Tensor:
        parts = (getattr(self, f"{part}_{number}")[None] for part in _ENCODED)
        return self._encode(*parts)[0]

    def _encode(self, *parts: torch.Tensor) -> torch.Tensor:
        nodes, node_mask, edges, edge_mask = parts
        return torch.cat(
            (_average(self.nodes(nodes), node_mask), _average(self.edges(edges), edge_mask)), dim=1
        )


def _average(codes: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The mean of the codes that stand for something."""
    kept = mask.to(codes.dtype)
    return torch.einsum("bnc,bn->bc", codes, kept) / kept.sum(dim=1, keepdim=True)


def _shared(array: Any) -> torch.Tensor:
    """A tensor over an array's own memory. Nothing writes to it, of which torch would warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.from_numpy(array)
