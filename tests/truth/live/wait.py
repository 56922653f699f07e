"""Say that all is there, and wait for the end of standard input."""

import sys


def ready() -> None:
    print("ready", flush=True)
    sys.stdin.read()
