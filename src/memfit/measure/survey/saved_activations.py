"""Trace a policy's forward pass without memory: fake tensors carry shapes and no data."""

from __future__ import annotations

from typing import Any

from memfit.model import Slope


def activations(model: Any, batch: int) -> Slope | None:
    """Bytes that a stable-baselines3 policy saves for its backward pass, as a line in the batch.

    None where the policy does something that only real data can answer.
    """
    low, high = max(1, batch // 2), batch
    if low == high:
        high = low + 1
    try:
        a, b = _saved_bytes(model, low), _saved_bytes(model, high)
    except Exception:  # noqa: BLE001 - a policy may do anything in its forward pass
        return None
    per_unit = (b - a) // (high - low)
    return Slope(fixed=b - per_unit * high, per_unit=per_unit)


def _saved_bytes(model: Any, batch: int) -> int:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    policy = model.policy
    parameters = {t.untyped_storage()._cdata for t in policy.parameters()}
    saved: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in parameters:
            saved[storage._cdata] = storage.nbytes()
        return tensor

    validate = torch.distributions.Distribution._validate_args
    torch.distributions.Distribution.set_default_validate_args(False)
    try:
        with FakeTensorMode(allow_non_fake_inputs=True):
            inputs = _observations(model, batch)
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
                held = _forward(model, inputs, batch)
    finally:
        torch.distributions.Distribution.set_default_validate_args(validate)
    del held
    return sum(saved.values())


def _observations(model: Any, batch: int) -> Any:
    import torch

    space = model.observation_space
    sample = space.sample()
    if isinstance(sample, dict):
        return {
            key: torch.empty((batch, *item.shape), dtype=torch.as_tensor(item).dtype)
            for key, item in sample.items()
        }
    kind = torch.as_tensor(sample).dtype
    return torch.empty((batch, *getattr(sample, "shape", ())), dtype=kind)


def _forward(model: Any, observations: Any, batch: int) -> Any:
    """The forward pass that the update differentiates, by what the policy offers."""
    import torch

    policy = model.policy
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
    critic = policy.critic
    return critic(observations, torch.zeros((batch, *shape)))
