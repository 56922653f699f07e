"""A rollout that never ends: an env that never says done, 5.7 KB kept a step."""

import sys
import threading
import time

import numpy as np


class Agent:
    def __init__(self) -> None:
        self.trajectory: list[tuple[np.ndarray, float]] = []


def explore(agent: Agent, done: threading.Event) -> None:
    while not done.is_set():
        state = np.random.rand(712)  # 5,696 bytes
        agent.trajectory.append((state, 0.0))
        if len(agent.trajectory) % 20 == 0:
            time.sleep(0.01)


stop = threading.Event()


def wait() -> None:
    sys.stdin.read()
    stop.set()


threading.Thread(target=wait, daemon=True).start()
print("ready", flush=True)
explore(Agent(), stop)
