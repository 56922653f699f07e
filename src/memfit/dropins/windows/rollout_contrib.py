"""Rollout buffers of sb3-contrib that store each sample of a window once.

MaskablePPO("CnnPolicy", env, rollout_buffer_class=WindowMaskableRolloutBuffer)

model = RecurrentPPO("CnnLstmPolicy", env)   # takes no class of buffer
WindowRecurrentRolloutBuffer.put_into(model)
"""

from __future__ import annotations

from typing import Any

from sb3_contrib.common.maskable.buffers import MaskableDictRolloutBuffer, MaskableRolloutBuffer
from sb3_contrib.common.recurrent.buffers import (
    RecurrentDictRolloutBuffer,
    RecurrentRolloutBuffer,
)

from memfit.dropins.windows.rollout import _WindowRollout
from memfit.errors import UsageError


class WindowMaskableDictRolloutBuffer(_WindowRollout, MaskableDictRolloutBuffer):
    """For Dict observations; `WindowMaskableRolloutBuffer` becomes this by itself."""


class WindowMaskableRolloutBuffer(_WindowRollout, MaskableRolloutBuffer):
    """For MaskablePPO: stacked frames and histories are stored once."""

    _for_dict = WindowMaskableDictRolloutBuffer


class WindowRecurrentDictRolloutBuffer(_WindowRollout, RecurrentDictRolloutBuffer):
    """For Dict observations; `WindowRecurrentRolloutBuffer` becomes this by itself."""


class WindowRecurrentRolloutBuffer(_WindowRollout, RecurrentRolloutBuffer):
    """For RecurrentPPO: stacked frames and histories are stored once."""

    _for_dict = WindowRecurrentDictRolloutBuffer

    @classmethod
    def put_into(cls, model: Any, **options: Any) -> Any:
        """Replace the buffer of a RecurrentPPO before it learns; gives the new buffer."""
        old = getattr(model, "rollout_buffer", None)
        if not isinstance(old, RecurrentRolloutBuffer | RecurrentDictRolloutBuffer):
            raise UsageError(
                f"{type(model).__name__} has no recurrent rollout buffer. Give RecurrentPPO here; "
                "other algorithms take rollout_buffer_class="
            )
        model.rollout_buffer = cls(
            old.buffer_size,
            old.observation_space,
            old.action_space,
            old.hidden_state_shape,
            device=old.device,
            gae_lambda=old.gae_lambda,
            gamma=old.gamma,
            n_envs=old.n_envs,
            **options,
        )
        return model.rollout_buffer
