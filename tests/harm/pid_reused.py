"""Start a command under a number that another process had a moment ago, which memfit watches still.

Run as a program in a PID namespace of its own, where it may say which number is the next.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

NEXT = Path("/proc/sys/kernel/ns_last_pid")
TRIES = 50


def main() -> int:
    with subprocess.Popen(["sleep", "1000"]) as before:
        watch = [sys.executable, "-m", "memfit", "watch", str(before.pid), "--every", "50ms"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        watching = subprocess.Popen(watch, **quiet)  # type: ignore[call-overload]
        time.sleep(1.5)
        watching.send_signal(19)  # so that it cannot see that the number is free
        before.kill()
    for _ in range(TRIES):
        NEXT.write_text(str(before.pid - 1))
        process = subprocess.Popen(sys.argv[1:])
        if process.pid == before.pid:
            break
        process.kill()
        process.wait()
    else:
        return 98
    watching.send_signal(18)
    code = process.wait()
    watching.kill()
    watching.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    os._exit(main())
