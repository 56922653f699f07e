"""A replay of stacked frames that becomes resident while it fills.

Given a file, the script writes there how many steps it has made.
"""

import sys
from pathlib import Path

from frames import Frames
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback

STEPS = 8_000


class Tell(BaseCallback):
    def _on_step(self) -> bool:
        if len(sys.argv) > 1 and self.num_timesteps % 50 == 0:
            Path(sys.argv[1]).write_text(str(self.num_timesteps))
        return True


model = DQN(
    "CnnPolicy",
    Frames(side=84, channels=4, channels_first=True),
    buffer_size=50_000,
    learning_starts=100,
    train_freq=400,
    exploration_final_eps=1.0,  # random actions: the network is not asked at every step
    device="cpu",
)
model.learn(STEPS, callback=Tell())
