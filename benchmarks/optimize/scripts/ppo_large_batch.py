"""PPO whose minibatch decides: wide networks, and all of a rollout at once."""

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from worlds import Readings

env = make_vec_env(lambda: Readings(64), n_envs=4)
policy = {"net_arch": [1024, 1024]}
model = PPO(
    "MlpPolicy", env, n_steps=1024, batch_size=4096, n_epochs=1, policy_kwargs=policy, device="cpu"
)
model.learn(100_000)
