"""Twenty threads that wait, three that compute, each with an arena of malloc."""

import threading
import time

import numpy as np
from wait import ready

kept: list[list[np.ndarray]] = []


def hold() -> None:
    kept.append([np.ones(1000) for _ in range(200)])
    time.sleep(1000)


def compute() -> None:
    while True:
        sum(range(1000))


for i in range(23):
    target = hold if i < 20 else compute
    threading.Thread(target=target, daemon=True).start()
while len(kept) < 20:
    time.sleep(0.01)
ready()
