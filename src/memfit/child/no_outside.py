"""Keeps the rest of a script, which trained nothing, from telling or asking anybody outside.

Files are held by namespaces, or by `file_shield` and `confinement`, already. What would come after
a training may also send its results, start programs or signal other processes: none of that may
happen for a plan.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path
from typing import Any

from memfit.child.confinement import no_network
from memfit.measure.kernel import proc

_FILE_BYTES = 2**30  # the most that one file may grow to
_NO_WINDOW = {"SDL_VIDEODRIVER": "dummy", "SDL_AUDIODRIVER": "dummy", "MPLBACKEND": "Agg"}
_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")
_PROGRAMS = {"os.system", "os.exec", "os.posix_spawn", "os.startfile", "pty.spawn"}
_SENDING = {"socket.connect", "socket.sendto", "socket.sendmsg", "socket.bind"}
_SIGNALS = {"os.kill", "os.killpg"}
_ENCODERS = ("ffmpeg",)  # what videos are written with counts; it is held to the same files


def no_windows() -> None:
    """Let what the script shows be drawn where nobody sees it."""
    os.environ.update(_NO_WINDOW)
    for name in _DISPLAYS:
        os.environ.pop(name, None)


def close_off(folder: str) -> None:
    """From now on, this process connects to nobody, starts no program and signals no stranger.

    Sockets below the folder are its own.
    """
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_BYTES, resource.RLIM_INFINITY))
    own = os.getpid()

    def refuse(event: str, args: tuple[Any, ...]) -> None:
        if event in _SENDING:
            refused = not _is_own(args[1], folder)
        elif event in _SIGNALS:
            refused = event == "os.killpg" or args[0] not in (own, *proc.descendants(own))
        elif event == "subprocess.Popen":
            refused = not Path(os.fsdecode(args[0])).name.startswith(_ENCODERS)
        else:
            refused = event in _PROGRAMS
        if refused:
            raise PermissionError(f"a plan does not let what follows learn() do this: {event}")

    sys.addaudithook(refuse)
    no_network()


def _is_own(address: Any, folder: str) -> bool:
    """Whether a socket's address is in the folder: those of the script's own workers."""
    if isinstance(address, str | bytes):
        return os.fsdecode(address).startswith((folder, os.path.realpath(folder)))
    return address is None
