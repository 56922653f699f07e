"""JAX actor-critic: one jitted update, called in a Python loop; settings are a dict in capitals."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

CONFIG = {"N_ENVS": 512, "UNROLL": 48, "OBS_DIM": 600, "HIDDEN": 256, "UPDATES": 12, "LR": 1e-3}


def init(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    pairs = zip(keys, sizes[:-1], sizes[1:], strict=True)
    return [(jax.random.normal(k, (i, o)) * i**-0.5, jnp.zeros(o)) for k, i, o in pairs]


def net(params, x):
    *hidden, (w, b) = params
    for hw, hb in hidden:
        x = jax.nn.relu(x @ hw + hb)
    out = x @ w + b
    return out[..., :-1], out[..., -1]


def env_step(state, action, key):
    drift = jax.random.normal(key, state.shape) * 0.1
    state = 0.9 * state + drift + (action[:, None] - 2) * 0.05
    return state, -jnp.abs(state).mean(-1)


def unroll(params, state, key):
    def one(carry, key):
        state = carry
        pick, move = jax.random.split(key)
        logits, _ = net(params, state)
        action = jax.random.categorical(pick, logits)
        following, reward = env_step(state, action, move)
        return following, (state, action, reward)

    return jax.lax.scan(one, state, jax.random.split(key, CONFIG["UNROLL"]))


def loss_fn(params, obs, actions, returns):
    logits, values = net(params, obs)
    logp = jnp.take_along_axis(jax.nn.log_softmax(logits), actions[..., None], -1)[..., 0]
    advantage = jax.lax.stop_gradient(returns - values)
    return jnp.mean((returns - values) ** 2) - jnp.mean(logp * advantage)


@functools.partial(jax.jit, donate_argnums=(0, 1))
def update(params, momentum, state, key):
    state, (obs, actions, rewards) = unroll(params, state, key)
    last = net(params, state)[1]
    _, returns = jax.lax.scan(lambda g, r: ((g := r + 0.97 * g), g), last, rewards, reverse=True)
    loss, grads = jax.value_and_grad(loss_fn)(params, obs, actions, returns)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
    params = jax.tree.map(lambda p, m: p - CONFIG["LR"] * m, params, momentum)
    return params, momentum, state, loss, obs


def main():
    key = jax.random.PRNGKey(0)
    params = init(key, (CONFIG["OBS_DIM"], CONFIG["HIDDEN"], CONFIG["HIDDEN"], 6))
    momentum = jax.tree.map(jnp.zeros_like, params)
    state = jnp.zeros((CONFIG["N_ENVS"], CONFIG["OBS_DIM"]))
    seen = []
    for number in range(CONFIG["UPDATES"]):
        key, now = jax.random.split(key)
        params, momentum, state, loss, obs = update(params, momentum, state, now)
        seen.append(np.asarray(obs).std())
        print(f"update {number}: {float(loss):.4f}, spread {seen[-1]:.3f}")


if __name__ == "__main__":
    main()
