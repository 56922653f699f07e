"""In the style of a zoo: hyperparameters by env, the algorithm by its name."""

import stable_baselines3
from stable_baselines3.common.monitor import Monitor
from worlds import Readings

HYPERPARAMETERS = {
    "Readings-v0": {
        "algo": "SAC",
        "policy": "MlpPolicy",
        "buffer_size": 60_000,
        "learning_starts": 500,
        "train_freq": 8,
        "gradient_steps": 1,
        "batch_size": 64,
        "policy_kwargs": {"net_arch": [64, 64]},
        "n_timesteps": 100_000,
    }
}


def train(env_id: str, seed: int = 11):
    settings = dict(HYPERPARAMETERS[env_id])
    algo = getattr(stable_baselines3, settings.pop("algo"))
    steps = settings.pop("n_timesteps")
    env = Monitor(Readings(250, discrete=False))
    model = algo(env=env, seed=seed, **settings)
    model.learn(steps)
    return model


if __name__ == "__main__":
    train("Readings-v0")
