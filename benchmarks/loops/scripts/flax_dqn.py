"""JAX: a DQN with flax and optax; the env and the replay buffer are on the host."""

import argparse
from typing import Any

import flax.linen as nn
import gymnasium as gym
import jax
import numpy as np
import optax
from flax.training.train_state import TrainState
from jax import numpy as jnp

Tree = Any


class QNetwork(nn.Module):
    """Values of actions."""

    hidden: int
    actions: int

    @nn.compact
    def __call__(self, x: Tree) -> Tree:
        """Two layers and a head."""
        x = nn.relu(nn.Dense(self.hidden)(x))
        x = nn.relu(nn.Dense(self.hidden)(x))
        return nn.Dense(self.actions)(x)


class Sensors(gym.ObservationWrapper[Any, Any, Any]):
    """CartPole seen through many random sensors."""

    def __init__(self, env: Any, sensors: int) -> None:
        super().__init__(env)
        self.gains = np.random.default_rng(0).normal(size=(4, sensors)).astype(np.float32)
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (sensors,), np.float32)

    def observation(self, observation: Any) -> Any:
        """What the sensors say."""
        return np.tanh(observation @ self.gains)


class State(TrainState):  # type: ignore[misc]
    """Two networks, one of which lags behind."""

    target_params: Tree = None


@jax.jit
def update(state: State, obs: Tree, actions: Tree, rewards: Tree, nexts: Tree, dones: Tree) -> Tree:
    """One step of gradient descent."""
    best = state.apply_fn(state.target_params, nexts).max(-1)
    target = rewards + (1.0 - dones) * 0.99 * best

    def loss_fn(params: Tree) -> Tree:
        values = state.apply_fn(params, obs)
        return ((values[jnp.arange(len(actions)), actions] - target) ** 2).mean()

    loss, grads = jax.value_and_grad(loss_fn)(state.params)
    return loss, state.apply_gradients(grads=grads)


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--total-timesteps", type=int, default=6000)
    parser.add_argument("--learning-starts", type=int, default=1000)
    parser.add_argument("--buffer-size", type=int, default=6000)
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--sensors", type=int, default=2048)
    args = parser.parse_args()

    env = Sensors(gym.make("CartPole-v1"), args.sensors)
    network = QNetwork(args.hidden, 2)
    obs, _ = env.reset(seed=0)
    params = network.init(jax.random.PRNGKey(0), obs)
    state = State.create(
        apply_fn=network.apply, params=params, target_params=params, tx=optax.adam(1e-3)
    )
    act = jax.jit(network.apply)
    rng = np.random.default_rng(0)
    observations = np.zeros((args.buffer_size, args.sensors), np.float32)
    nexts = np.zeros((args.buffer_size, args.sensors), np.float32)
    actions = np.zeros(args.buffer_size, np.int32)
    rewards = np.zeros(args.buffer_size, np.float32)
    dones = np.zeros(args.buffer_size, np.float32)
    for step in range(args.total_timesteps):
        if rng.random() < 0.1 or step < args.learning_starts:
            action = int(rng.integers(2))
        else:
            action = int(act(state.params, obs).argmax())
        after, reward, terminated, truncated, _ = env.step(action)
        place = step % args.buffer_size
        observations[place], nexts[place], actions[place] = obs, after, action
        rewards[place], dones[place] = float(reward), terminated
        obs = env.reset()[0] if terminated or truncated else after
        if step > args.learning_starts and step % 10 == 0:
            picked = rng.integers(0, min(step, args.buffer_size), args.batch_size)
            loss, state = update(
                state, observations[picked], actions[picked], rewards[picked], nexts[picked],
                dones[picked],
            )  # fmt: skip
        if step % 500 == 0:
            state = state.replace(target_params=state.params)
    print(f"last loss {float(loss):.4f}")


if __name__ == "__main__":
    main()
