"""The words that a child which steps an environment, and who reads it, say to each other.

Each is one struct through a pipe, made once: nothing of them stays in the child's memory.
"""

from __future__ import annotations

import struct
from enum import IntEnum, StrEnum

ASK, GO, TELL = "ask", "go", "tell.json"  # pipes, and a file, of the scratch folder


class Command(IntEnum):
    """What the child is to do next; it waits again after each."""

    STEP = 0  # up to a frame, then on to the end of an episode, at most to another frame
    COLLECT = 1  # Python's garbage
    TRIM = 2  # malloc's free memory
    TELL = 3  # who the paths of a file are
    MARK = 4  # from here on, lines that allocate are compared
    END = 5


class Moment(StrEnum):
    """What was being done before the first step, where that failed."""

    MADE = "it was made"
    POLICY = "its policy was loaded"
    FIRST = "it was reset the first time"


# From the child: frames, episodes, whether one has just ended, nanoseconds of stepping, bytes of
# malloc in use, mapped by it and free, what its arenas have, whether garbage is collected.
SAID = struct.Struct("<9q")
# To the child: command, frame from which an episode's end is waited for, frame at the latest.
TOLD = struct.Struct("<3q")
