"""A program that is no Python: `cat`, which waits for its input."""

import os

print("ready", flush=True)
os.execvp("cat", ["cat"])
