"""Two forked workers, each with an environment of its own."""

from frames import Frames
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import SubprocVecEnv

if __name__ == "__main__":
    env = SubprocVecEnv([lambda: Frames(side=48)] * 2, start_method="fork")
    model = PPO("CnnPolicy", env, n_steps=256, batch_size=64, n_epochs=2, device="cpu")
    model.learn(3 * 2 * 256)
    env.close()
