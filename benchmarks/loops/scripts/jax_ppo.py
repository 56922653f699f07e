"""JAX: env, rollout and update are one compiled program, scanned over all updates."""

import argparse
from typing import Any

import jax
from jax import numpy as jnp

Tree = Any


def parse_config() -> dict[str, int]:
    """Settings, in capitals as they are used."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-envs", type=int, default=256)
    parser.add_argument("--num-steps", type=int, default=128)
    parser.add_argument("--num-updates", type=int, default=10)
    parser.add_argument("--num-minibatches", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--sensors", type=int, default=512)
    return {key.upper(): value for key, value in vars(parser.parse_args()).items()}


def layer(key: Tree, inputs: int, outputs: int) -> Tree:
    """Weights of a dense layer."""
    return {
        "w": jax.random.normal(key, (inputs, outputs)) / jnp.sqrt(inputs),
        "b": jnp.zeros(outputs),
    }


def network(params: Tree, x: Tree) -> tuple[Tree, Tree]:
    """Logits and value."""
    hidden = jnp.tanh(x @ params["in"]["w"] + params["in"]["b"])
    logits = hidden @ params["pi"]["w"] + params["pi"]["b"]
    return logits, (hidden @ params["v"]["w"] + params["v"]["b"])[..., 0]


def env_step(state: Tree, action: Tree) -> tuple[Tree, Tree]:
    """A point on a line that is to be kept at zero."""
    state = 0.99 * state + 0.1 * (action - 1.0)
    return state, -jnp.abs(state)


def make_train(config: dict[str, int]) -> Any:
    """The whole training as one function of a key."""
    gains = jnp.linspace(-1, 1, config["SENSORS"])

    def sense(state: Tree) -> Tree:
        return jnp.tanh(state[:, None] * gains)

    def loss_fn(params: Tree, batch: Tree) -> Tree:
        logits, value = network(params, batch["obs"])
        logp = jax.nn.log_softmax(logits)[jnp.arange(len(batch["action"])), batch["action"]]
        ratio = jnp.exp(logp - batch["logp"])
        advantage = batch["target"] - batch["value"]
        gain = jnp.minimum(ratio * advantage, jnp.clip(ratio, 0.8, 1.2) * advantage)
        return ((value - batch["target"]) ** 2).mean() - gain.mean()

    def train(key: Tree) -> Tree:
        keys = jax.random.split(key, 5)
        params = {
            "in": layer(keys[0], config["SENSORS"], config["HIDDEN"]),
            "pi": layer(keys[1], config["HIDDEN"], 3),
            "v": layer(keys[2], config["HIDDEN"], 1),
        }
        momentum = jax.tree.map(jnp.zeros_like, params)
        state = jax.random.normal(keys[3], (config["NUM_ENVS"],))

        def one_step(carry: Tree, _: Tree) -> tuple[Tree, Tree]:
            params, state, key = carry
            key, draw = jax.random.split(key)
            obs = sense(state)
            logits, value = network(params, obs)
            action = jax.random.categorical(draw, logits)
            logp = jax.nn.log_softmax(logits)[jnp.arange(len(action)), action]
            state, reward = env_step(state, action)
            kept = {"obs": obs, "action": action, "logp": logp, "value": value, "reward": reward}
            return (params, state, key), kept

        def minibatch(carry: Tree, batch: Tree) -> tuple[Tree, Tree]:
            params, momentum = carry
            loss, grads = jax.value_and_grad(loss_fn)(params, batch)
            momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
            params = jax.tree.map(lambda p, m: p - 1e-3 * m, params, momentum)
            return (params, momentum), loss

        def update(carry: Tree, _: Tree) -> tuple[Tree, Tree]:
            params, momentum, state, key = carry
            inside = (params, state, key)
            (_, state, key), kept = jax.lax.scan(one_step, inside, None, config["NUM_STEPS"])
            rewards = kept.pop("reward")

            def back(future: Tree, reward: Tree) -> tuple[Tree, Tree]:
                future = reward + 0.99 * future
                return future, future

            _, kept["target"] = jax.lax.scan(back, kept["value"][-1], rewards, reverse=True)
            key, draw = jax.random.split(key)
            count = config["NUM_STEPS"] * config["NUM_ENVS"]
            order = jax.random.permutation(draw, count)
            flat = jax.tree.map(lambda x: x.reshape((count, *x.shape[2:]))[order], kept)
            parts = config["NUM_MINIBATCHES"]
            batches = jax.tree.map(lambda x: x.reshape((parts, -1, *x.shape[1:])), flat)
            (params, momentum), losses = jax.lax.scan(minibatch, (params, momentum), batches)
            metrics = {"reward": rewards.mean(), "loss": losses.mean()}
            return (params, momentum, state, key), metrics

        carry = (params, momentum, state, keys[4])
        return jax.lax.scan(update, carry, None, config["NUM_UPDATES"])

    return train


if __name__ == "__main__":
    config = parse_config()
    train_jit = jax.jit(make_train(config))
    _, metrics = jax.block_until_ready(train_jit(jax.random.PRNGKey(0)))
    print(f"last reward {float(metrics['reward'][-1]):.3f}")
