"""A seeded training whose end result is one number: PPO on CartPole, the digest of its weights."""

import hashlib
import os
import sys
import time

from stable_baselines3 import PPO

steps = int(sys.argv[1])
model = PPO("MlpPolicy", "CartPole-v1", seed=0, device="cpu", n_steps=256)
print(os.getpid(), flush=True)
started = time.perf_counter()
model.learn(steps)
took = time.perf_counter() - started
digest = hashlib.sha256()
for name, tensor in sorted(model.policy.state_dict().items()):
    digest.update(name.encode() + tensor.numpy().tobytes())
print(digest.hexdigest(), f"{took:.2f}")
