"""PPO with four worker processes by the usual helper."""

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import SubprocVecEnv


def main():
    env = make_vec_env("Pendulum-v1", n_envs=3, vec_env_cls=SubprocVecEnv, seed=5)
    model = PPO("MlpPolicy", env, n_steps=256, batch_size=128, n_epochs=2, seed=5)
    model.learn(20_000)
    env.close()


if __name__ == "__main__":
    main()
