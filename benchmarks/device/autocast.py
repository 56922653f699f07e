"""Mixed precision as on a card: operations that autocast does in float32 there, not here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

_WIDE = frozenset(
    getattr(owner, name)
    for name in ("exp", "expm1", "log", "pow", "reciprocal", "rsqrt", "sum", "softmax", "cumsum")
    for owner in (torch, Tensor)
) | {Tensor.__pow__, torch.nn.functional.softmax, torch.nn.functional.layer_norm}


class CardAutocast(TorchFunctionMode):
    """Casts what these operations are given, where autocast is on."""

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given = (args, dict(kwargs or {}))
        if func in _WIDE and torch.is_autocast_enabled("cpu"):
            given = tree_map_only(Tensor, _wide, given)
        return func(*given[0], **given[1])


def _wide(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor
