"""SAC with hindsight on a goal that moves, as in a tutorial on robotics."""

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from stable_baselines3 import SAC, HerReplayBuffer


class Reach(gym.Env):
    def __init__(self):
        goal = spaces.Box(-1, 1, (3,), np.float32)
        self.observation_space = spaces.Dict(
            observation=spaces.Box(-1, 1, (400,), np.float32),
            achieved_goal=goal,
            desired_goal=goal,
        )
        self.action_space = spaces.Box(-1, 1, (3,), np.float32)

    def _get_obs(self):
        rest = self.np_random.uniform(-1, 1, 400).astype(np.float32)
        return {"observation": rest, "achieved_goal": self.hand, "desired_goal": self.goal}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        self.hand = np.zeros(3, np.float32)
        self.goal = self.np_random.uniform(-1, 1, 3).astype(np.float32)
        return self._get_obs(), {}

    def step(self, action):
        self.t += 1
        self.hand = np.clip(self.hand + 0.1 * action, -1, 1).astype(np.float32)
        reward = self.compute_reward(self.hand, self.goal, {})
        return self._get_obs(), float(reward), False, self.t >= 50, {}

    def compute_reward(self, achieved, desired, info):
        return -(np.linalg.norm(achieved - desired, axis=-1) > 0.1).astype(np.float32)


model = SAC(
    "MultiInputPolicy",
    Reach(),
    replay_buffer_class=HerReplayBuffer,
    replay_buffer_kwargs={"n_sampled_goal": 4, "goal_selection_strategy": "future"},
    buffer_size=40_000,
    learning_starts=200,
    train_freq=8,
    batch_size=64,
)
model.learn(50_000)
