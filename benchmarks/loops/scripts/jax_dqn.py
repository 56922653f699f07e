"""JAX: DQN whose replay is a device array carried through jitted steps in a Python loop."""

import argparse
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

Tree = Any


def init(key: Tree, sizes: tuple[int, ...]) -> Tree:
    """Weights of a network."""
    keys = jax.random.split(key, len(sizes) - 1)
    shapes = zip(keys, sizes[:-1], sizes[1:], strict=True)
    return [(jax.random.normal(k, (i, o)) / i**0.5, jnp.zeros(o)) for k, i, o in shapes]


def values_of(params: Tree, x: Tree) -> Tree:
    """The value of each action."""
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    return x @ params[-1][0] + params[-1][1]


def loss_fn(params: Tree, target: Tree, batch: Tree) -> Tree:
    """The squared error of one step."""
    wanted = batch["reward"] + 0.99 * values_of(target, batch["next"]).max(1)
    got = values_of(params, batch["obs"])[jnp.arange(len(wanted)), batch["action"]]
    return ((got - jax.lax.stop_gradient(wanted)) ** 2).mean()


def add(replay: Tree, place: Tree, rows: Tree) -> Tree:
    """Write rows of one step of all envs."""

    def write(array: Tree, new: Tree) -> Tree:
        return jax.lax.dynamic_update_slice_in_dim(array, new, place, 0)

    return jax.tree.map(write, replay, rows)


def learn(params: Tree, target: Tree, replay: Tree, key: Tree, filled: Tree, *, batch: int) -> Tree:
    """Sample and step."""
    rows = jax.random.randint(key, (batch,), 0, filled)
    loss, grads = jax.value_and_grad(loss_fn)(
        params, target, {k: v[rows] for k, v in replay.items()}
    )
    return jax.tree.map(lambda p, g: p - 1e-3 * g, params, grads), loss


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-envs", type=int, default=64)
    parser.add_argument("--buffer-size", type=int, default=32_768)
    parser.add_argument("--batch-size", type=int, default=1_024)
    parser.add_argument("--obs-size", type=int, default=1_200)
    parser.add_argument("--steps", type=int, default=700)
    parser.add_argument("--learning-starts", type=int, default=200)
    args = parser.parse_args()
    key = jax.random.PRNGKey(0)
    params = init(key, (args.obs_size, 256, 4))
    target = params
    replay = {
        "obs": jnp.zeros((args.buffer_size, args.obs_size)),
        "next": jnp.zeros((args.buffer_size, args.obs_size)),
        "action": jnp.zeros(args.buffer_size, jnp.int32),
        "reward": jnp.zeros(args.buffer_size),
    }
    add_jit = jax.jit(add, donate_argnums=0)
    learn_jit = jax.jit(partial(learn, batch=args.batch_size))
    act_jit = jax.jit(lambda params, obs: values_of(params, obs).argmax(1))
    rng = np.random.default_rng(0)
    obs = rng.random((args.num_envs, args.obs_size), dtype=np.float32)
    for step in range(args.steps):
        action = np.asarray(act_jit(params, obs))
        if rng.random() < 0.5:
            action = rng.integers(0, 4, args.num_envs)
        following = np.roll(obs, 1, axis=1)
        following[np.arange(args.num_envs), action] *= 0.9
        reward = following[:, 0]
        rows = {"obs": obs, "next": following, "action": action.astype(np.int32), "reward": reward}
        place = step * args.num_envs % args.buffer_size
        replay = add_jit(replay, place, rows)
        obs = following
        if step >= args.learning_starts and step % 10 == 0:
            key, draw = jax.random.split(key)
            filled = min(args.buffer_size, (step + 1) * args.num_envs)
            params, loss = learn_jit(params, target, replay, draw, filled)
            if step % 100 == 0:
                target = params
                print(f"step {step}: loss {float(loss):.4f}")


if __name__ == "__main__":
    main()
