"""Three forks that share 100 MiB of their parent and have 10 MiB of their own."""

import os
import signal
import time

import numpy as np
from wait import ready

level = np.ones(100 * 2**20, dtype=np.uint8)
pids = []
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        own = np.ones(10 * 2**20, dtype=np.uint8)
        time.sleep(1000)
    pids.append(pid)
time.sleep(0.5)
ready()
for pid in pids:
    os.kill(pid, signal.SIGKILL)
