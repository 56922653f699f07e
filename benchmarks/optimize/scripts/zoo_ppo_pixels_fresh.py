"""In the style of a zoo: PPO with the settings for Atari, on eight envs of stacked frames."""

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecFrameStack, VecTransposeImage
from worlds import Pictures

kwargs = {
    "n_steps": 128,
    "n_epochs": 1,
    "batch_size": 256,
    "learning_rate": 2.5e-4,
    "clip_range": 0.1,
    "vf_coef": 0.5,
    "ent_coef": 0.01,
}
env = VecTransposeImage(VecFrameStack(make_vec_env(Pictures, n_envs=8), n_stack=4))
PPO("CnnPolicy", env, **kwargs).learn(1_000_000)
