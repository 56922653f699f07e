"""JAX: evolution strategies in compiled calls from a Python loop, without any gradient."""

import argparse
from functools import partial
from typing import Any

import jax
from jax import numpy as jnp

Tree = Any


def rollout(weights: Tree, start: Tree, hidden: int, steps: int) -> Tree:
    """The return of one member, on a point that is to be kept at zero."""
    inner = weights[: 8 * hidden].reshape(8, hidden)
    outer = weights[8 * hidden :]

    def one_step(state: Tree, _: None) -> tuple[Tree, Tree]:
        push = jnp.tanh(jnp.tanh(state @ inner) @ outer)
        state = 0.98 * state + 0.1 * push
        return state, -jnp.abs(state).sum()

    _, rewards = jax.lax.scan(one_step, start, None, steps)
    return rewards.sum()


@partial(jax.jit, static_argnames=("population",))
def ask(mean: Tree, key: Tree, population: int) -> Tree:
    """A population around the mean."""
    return mean + 0.1 * jax.random.normal(key, (population, mean.shape[0]))


@partial(jax.jit, static_argnames=("hidden", "steps"))
def evaluate(members: Tree, key: Tree, hidden: int, steps: int) -> Tree:
    """How well each member does."""
    starts = jax.random.normal(key, (len(members), 8))
    return jax.vmap(lambda w, s: rollout(w, s, hidden, steps))(members, starts)


@jax.jit
def tell(mean: Tree, members: Tree, scores: Tree) -> Tree:
    """Move the mean towards those that did well."""
    ranks = scores.argsort().argsort() / (len(scores) - 1) - 0.5
    return mean + 0.5 / len(scores) * (ranks @ (members - mean))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--population", type=int, default=2048)
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--generations", type=int, default=12)
    parser.add_argument("--max-steps", type=int, default=50)
    args = parser.parse_args()
    key = jax.random.PRNGKey(0)
    mean = jnp.zeros(9 * args.hidden)
    for generation in range(args.generations):
        key, first, second = jax.random.split(key, 3)
        members = ask(mean, first, args.population)
        scores = evaluate(members, second, args.hidden, args.max_steps)
        mean = tell(mean, members, scores)
        print(f"generation {generation}: best {float(scores.max()):.2f}")
