"""The forward pass of a stable-baselines3 policy, as its update differentiates it."""

from __future__ import annotations

from typing import Any


def forward(model: Any, batch: int) -> Any:
    """The pass on observations of no meaning, by what the policy offers."""
    import torch

    policy = model.policy
    observations = _observations(model, batch)
    shape = model.action_space.shape
    if hasattr(policy, "evaluate_actions"):
        actions = torch.zeros((batch, *shape))
        if hasattr(policy, "lstm_actor"):
            lstm = policy.lstm_actor
            state = torch.zeros((lstm.num_layers, 1, lstm.hidden_size))
            states = type(model._last_lstm_states)((state, state), (state, state))
            return policy.evaluate_actions(observations, actions, states, torch.zeros(batch))
        return policy.evaluate_actions(observations, actions)
    for name in ("q_net", "quantile_net"):
        if hasattr(policy, name):
            return getattr(policy, name)(observations)
    return policy.critic(observations, torch.zeros((batch, *shape)))


def _observations(model: Any, batch: int) -> Any:
    import torch

    sample = model.observation_space.sample()
    if isinstance(sample, dict):
        return {
            key: torch.empty((batch, *item.shape), dtype=torch.as_tensor(item).dtype)
            for key, item in sample.items()
        }
    kind = torch.as_tensor(sample).dtype
    return torch.empty((batch, *getattr(sample, "shape", ())), dtype=kind)
