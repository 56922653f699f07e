"""DQN of stable-baselines3 on a game with pictures: the replay buffer is what takes the memory."""

import argparse

from my_game import make_env
from stable_baselines3 import DQN

parser = argparse.ArgumentParser()
parser.add_argument("--buffer-size", type=int, default=50_000)
parser.add_argument("--steps", type=int, default=600)
args = parser.parse_args()

model = DQN(
    "CnnPolicy",
    make_env(),
    buffer_size=args.buffer_size,
    learning_starts=100,
    batch_size=32,
    device="cpu",
)
model.learn(args.steps)
