"""A torch loop that never rests, with its pool of threads spinning."""

import sys
import threading

import torch

done = threading.Event()


def wait() -> None:
    sys.stdin.read()
    done.set()


threading.Thread(target=wait, daemon=True).start()
weights = torch.randn(400, 400)
inputs = torch.randn(1000, 400)
inputs @ weights
print("ready", flush=True)
while not done.is_set():
    (inputs @ weights).relu_()
