"""Language models of the published runs: from the package transformers, without weights.

Attention works without dropout here, so that it is one operation, as it is on a card.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from torch import nn

_T5 = {"vocab_size": 32128, "d_kv": 64, "decoder_start_token_id": 0}
_LOCAL = [[["global", "local"], 6]]
# Model, its class, and what of its configuration differs from the defaults.
CONFIGURATIONS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "EleutherAI/gpt-neo-125M": (
        "GPTNeoForCausalLM",
        "GPTNeoConfig",
        {"hidden_size": 768, "num_layers": 12, "num_heads": 12, "attention_types": _LOCAL},
    ),
    "T5-small": (
        "T5ForConditionalGeneration",
        "T5Config",
        {**_T5, "d_model": 512, "d_ff": 2048, "num_layers": 6, "num_heads": 8},
    ),
    "distilbert/distilgpt2": ("GPT2LMHeadModel", "GPT2Config", {"n_layer": 6, "attn_pdrop": 0.0}),
    "facebook/opt-125m": ("OPTForCausalLM", "OPTConfig", {"attention_dropout": 0.0}),
    "t5-base": (
        "T5ForConditionalGeneration",
        "T5Config",
        {**_T5, "d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12},
    ),
}


def language_model(name: str) -> Callable[[], nn.Module]:
    """Builds one, ready to be trained."""

    def build() -> nn.Module:
        transformers = importlib.import_module("transformers")
        model, configuration, changed = CONFIGURATIONS[name]
        made: nn.Module = getattr(transformers, model)(
            getattr(transformers, configuration)(**changed)
        )
        made.train()
        for part in made.modules():
            if hasattr(part, "layerdrop"):
                part.training = False  # leaves out no layer, which would depend on data
        return made

    return build
