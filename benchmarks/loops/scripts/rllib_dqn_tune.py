"""RLlib under Tune: DQN with a replay of episodes, which trains in an actor of Ray's."""

import gymnasium as gym
import numpy as np
from ray import tune
from ray.rllib.algorithms.dqn import DQNConfig

SENSORS = 600
CAPACITY = 40_000
ITERATIONS = 6


class Valves(gym.Env):
    """Open the valve behind the sensor that shows the highest pressure."""

    def __init__(self, config: dict) -> None:
        self.observation_space = gym.spaces.Box(0, 1, (config["sensors"],), np.float32)
        self.action_space = gym.spaces.Discrete(8)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple:
        super().reset(seed=seed)
        self.left = 200
        return self._pressures(), {}

    def step(self, action: int) -> tuple:
        self.left -= 1
        return self._pressures(), float(self.pressures[action]), self.left == 0, False, {}

    def _pressures(self) -> np.ndarray:
        self.pressures = self.np_random.random(self.observation_space.shape).astype(np.float32)
        return self.pressures


if __name__ == "__main__":
    config = (
        DQNConfig()
        .environment(Valves, env_config={"sensors": SENSORS})
        .env_runners(num_env_runners=1)
        .training(
            train_batch_size_per_learner=128,
            replay_buffer_config={
                "type": "PrioritizedEpisodeReplayBuffer",
                "capacity": CAPACITY,
                "alpha": 0.6,
                "beta": 0.4,
            },
        )
        .reporting(min_sample_timesteps_per_iteration=1000)
    )
    stop = {"training_iteration": ITERATIONS}
    run = tune.RunConfig(stop=stop, verbose=0)
    tune.Tuner("DQN", param_space=config, run_config=run).fit()
