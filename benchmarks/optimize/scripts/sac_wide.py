"""SAC on a long vector: the replay holds every observation twice."""

from stable_baselines3 import SAC
from worlds import Readings

model = SAC("MlpPolicy", Readings(3000, discrete=False), buffer_size=12_000, device="cpu")
model.learn(50_000)
