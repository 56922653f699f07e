"""The drone system in the middle of a training, after its first iteration."""

import sys
import threading

from memfit.systems.drone.fitted import Fitted
from memfit.systems.drone.settings import Settings

done = threading.Event()


def wait() -> None:
    sys.stdin.read()
    done.set()


threading.Thread(target=wait, daemon=True).start()
training = Fitted(Settings(agents=64, iterations=10_000), lambda stage, share: None)
for result in training.train():
    if result.number == 1:
        print("ready", flush=True)
    if done.is_set():
        break
