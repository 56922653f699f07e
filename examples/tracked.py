"""A training that tells memfit what it does: phases, steps and what its arrays are for."""

import argparse

from stable_baselines3 import PPO

import memfit
from memfit.tracking.sb3 import MemoryCallback

parser = argparse.ArgumentParser()
parser.add_argument("--recording", help="a file, where it does not run below `memfit run`")
args = parser.parse_args()

with memfit.track(args.recording) as run:
    run.phase("build")
    model = PPO("MlpPolicy", "CartPole-v1", n_steps=512, n_epochs=2, device="cpu")
    model.learn(2_048, callback=MemoryCallback())
