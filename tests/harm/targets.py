"""Trainings that are hard to look at, and what others do to them meanwhile."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time

from tests.harm import pid_reused
from tests.harm.disk import BESIDE, OWN
from tests.harm.scene import Fault, NotHere, Scene

_SEIZE, _INTERRUPT, _DETACH = 0x4206, 0x4207, 17


def traced(scene: Scene) -> None:
    """A debugger holds it: stopped once, then traced while it runs."""
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    ptrace.argtypes = [ctypes.c_long] * 4
    if ptrace(_SEIZE, scene.training, 0, 0):
        raise NotHere(f"tracing is not permitted: {os.strerror(ctypes.get_errno())}")
    scene.goes_on()
    ptrace(_INTERRUPT, scene.training, 0, 0)
    os.waitpid(scene.training, 0x40000000)  # __WALL
    scene.look()
    ptrace(_DETACH, scene.training, 0, 0)
    scene.goes_on()


def stopped(scene: Scene) -> None:
    """Stopped by its user, who lets it go on later."""
    os.kill(scene.training, signal.SIGSTOP)
    scene.look()
    time.sleep(1)
    os.kill(scene.training, signal.SIGCONT)
    scene.goes_on()


STOPPED = 300.0  # by the fault itself, until all have looked
REUSED = (
    "unshare",
    "-p",
    "-f",
    "--mount-proc",
    "--kill-child",
    sys.executable,
    pid_reused.__file__,
)
CONTAINED = ("unshare", "-p", "-f", "--kill-child")
NEWCOMER = ("env", "-u", "PYTHONPATH")

FAULTS = (
    Fault(name="in ptrace", kind="torch", inject=traced, pause=STOPPED),
    Fault(name="in ptrace, SB3", inject=traced, pause=STOPPED, kind="sb3"),
    Fault(name="stopped and let go on", kind="torch", inject=stopped, pause=STOPPED),
    Fault(name="its number was another's", kind="torch", prefix=REUSED),
    Fault(name="in a PID namespace", prefix=CONTAINED),
    Fault(name="without memfit's environment", prefix=NEWCOMER, record="-"),
    Fault(name="2,000 threads", kind="torch", own="Threads"),
    Fault(name="60,000 mappings", kind="torch", own="Mappings"),
    Fault(name="its descriptors exhausted", own="Descriptors", leaves=BESIDE),
    Fault(name="fork storm", kind="torch", own="Forks"),
    Fault(name="fork storm, SB3", own="Forks", kind="sb3"),
    Fault(name="exec storm", own="Execs"),
    Fault(name="300 zombies", own="Zombies"),
    Fault(name="daemons", kind="torch", own="Daemons"),
    Fault(name="daemons, with a limit", own="Daemons", options=("--limit", "4GiB")),
    Fault(name="becomes another program", own="Becomes", leaves=BESIDE),
    Fault(name="closes all files", kind="torch", own="Closes", leaves=BESIDE),
    Fault(name="its folder removed", own="Moves"),
    Fault(name="clock set back in the training", own="ClockBack"),
    Fault(name="clock set on in the training", own="ClockOn"),
    Fault(name="clock set back, track() alone", own="ClockBack", run=False, record=OWN),
    Fault(name="little room left in the training", own="LittleRoom"),
    Fault(name="may write no byte more", own="ShortFiles", run=False, record=OWN, leaves=BESIDE),
    Fault(name="tells nonsense", kind="torch", own="TellsNonsense"),
    Fault(name="tells nonsense, track() alone", own="TellsNonsense", run=False, record=OWN),
    Fault(name="forks in track()", own="ForksTracked"),
    Fault(name="hides, under a hostile name", own="Hidden"),
    Fault(name="becomes another user", own="Other", leaves=BESIDE),
    Fault(name="ends by a signal", own="Crashes", code=128 + signal.SIGSEGV),
    Fault(name="deaf for seconds", own="Deaf", pause=60.0),
    Fault(name="hostile objects", kind="torch", quick=True, own="Hostile"),
    Fault(name="hostile objects, SB3", own="Hostile", kind="sb3"),
)
