"""How processes have ended that are somebody else's children, where the kernel still tells."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import struct
from collections.abc import Iterable
from enum import Enum, auto

from memfit.measure.kernel import proc

_MOST = 200  # processes that are followed: each takes a descriptor
_INFO = struct.Struct("Q52xi")  # linux/pidfd.h: what is asked for and told, and the status
_GET_INFO = 3 << 30 | _INFO.size << 16 | 0xFF << 8 | 11
_ENDED = 1 << 3  # Linux 6.15
_STATUS = 49  # of the words of /proc/PID/stat
_SIGNAL = 0x7F  # the bits of a status that say which signal it was


class Ending(Enum):
    """What became of a process."""

    NOT_YET = auto()
    KILLED = auto()  # by SIGKILL
    OTHERWISE = auto()
    UNKNOWN = auto()


class Endings:
    """Follows processes as long as they run, so that they can be asked about when they are gone."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        self._possible = hasattr(os, "pidfd_open")  # a Python built for old systems has it not

    def follow(self, pids: Iterable[int]) -> None:
        """Follow these, as far as the kernel and the number of descriptors let us."""
        for pid in pids:
            if not self._possible or len(self._open) >= _MOST:
                return
            if pid not in self._open:
                self._follow(pid)

    def of(self, pid: int) -> Ending:
        """How a process has ended; it is followed no more once it has."""
        status = _buried(self._open[pid]) if pid in self._open else None
        if status is None:
            words = proc.text(f"/proc/{pid}/stat").rpartition(")")[2].split()
            if words and words[0] not in "ZX":
                return Ending.NOT_YET
            status = int(words[_STATUS]) if len(words) > _STATUS else None
        self.forget(pid)
        if status is None:
            return Ending.UNKNOWN
        return Ending.KILLED if status & _SIGNAL == signal.SIGKILL else Ending.OTHERWISE

    def forget(self, pid: int) -> None:
        """Follow it no more."""
        if pid in self._open:
            os.close(self._open.pop(pid))

    def close(self) -> None:
        """Follow nobody any more."""
        for pid in list(self._open):
            self.forget(pid)

    def _follow(self, pid: int) -> None:
        try:
            self._open[pid] = os.pidfd_open(pid)
            _ask(self._open[pid])
        except ProcessLookupError:
            self.forget(pid)
        except OSError as error:
            self.forget(pid)
            # Another error than one of this moment comes from a kernel that cannot.
            self._possible = error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def _buried(descriptor: int) -> int | None:
    """The status of a process whose parent has taken note of its end; None before, and unknown."""
    try:
        told, status = _ask(descriptor)
    except OSError:
        return None
    return status if told & _ENDED else None


def _ask(descriptor: int) -> tuple[int, int]:
    answer = bytearray(_INFO.pack(_ENDED, 0))
    fcntl.ioctl(descriptor, _GET_INFO, answer)
    told, status = _INFO.unpack(answer)
    return told, status
