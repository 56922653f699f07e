"""Reads what the kernel says about processes, without disturbing them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from memfit.units import format_bytes

_TERMINALS = ("/dev/pts/", "/dev/tty", "/dev/console")
PAGE = os.sysconf("SC_PAGE_SIZE")
_SMALL_PART = 0.02  # of a tree: what every process shares with all others, such as the C library


def text(path: str | Path) -> str:
    """What a file of the kernel says; nothing where it is gone or not ours."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def figure(path: str | Path, name: str) -> int | None:
    """The whole number that follows a name at the beginning of a line, where there is one."""
    for line in text(path).splitlines():
        if line.startswith(name):
            words = line.removeprefix(name).split()
            if words and words[0].isdigit():
                return int(words[0])
    return None


def read_smaps(path: str | Path, fields: Mapping[bytes, str]) -> list[tuple[bytes, dict[str, int]]]:
    """Each mapping's first line, and its amounts in bytes, by the names that `fields` gives them.

    Raises OSError where they may not be read.
    """
    found: list[tuple[bytes, dict[str, int]]] = []
    with open(path, "rb") as file:
        for line in file:
            name, colon, rest = line.partition(b":")
            if colon and (field := fields.get(name)):
                amounts = found[-1][1]
                amounts[field] = amounts.get(field, 0) + int(rest.split()[0]) * 1024
            elif b"-" in name and name[:1] in b"0123456789abcdef":
                found.append((line, {}))
    return found


@dataclass(frozen=True, kw_only=True)
class Rollup:
    """One process's memory in bytes, from `smaps_rollup`."""

    rss: int
    pss: int
    pss_anon: int
    pss_shmem: int
    anonymous: int
    private_dirty: int
    private_clean: int = 0
    rss_shmem: int = 0

    @property
    def private(self) -> int:
        """Pages that no other process has."""
        return self.private_dirty + self.private_clean

    @property
    def files(self) -> int:
        """Resident pages of mapped files, whoever else maps them."""
        return max(0, self.rss - self.anonymous - self.rss_shmem)

    @property
    def pss_files(self) -> int:
        """The same pages, those that others map as well by this process's part of them."""
        return max(0, self.pss - self.pss_anon - self.pss_shmem)


_FIELDS = {
    b"Rss": "rss",
    b"Pss": "pss",
    b"Pss_Anon": "pss_anon",
    b"Pss_Shmem": "pss_shmem",
    b"Anonymous": "anonymous",
    b"Private_Dirty": "private_dirty",
    b"Private_Clean": "private_clean",
}


def rollup(pid: int | str = "self") -> Rollup | None:
    """A process's memory, or None where it is gone or not ours."""
    try:
        ((_, found),) = read_smaps(f"/proc/{pid}/smaps_rollup", _FIELDS)
    except (OSError, ValueError):
        return None
    amounts = {name: found.get(name, 0) for name in _FIELDS.values()}
    # The rollup does not tell shared memory from files.
    shared = figure(f"/proc/{pid}/status", "RssShmem:") if amounts["pss_shmem"] else 0
    return None if shared is None else Rollup(**amounts, rss_shmem=shared * 1024)


def shared_memory(pid: int) -> int:
    """Resident pages of shared memory alone; 0 where the process is gone."""
    return _status("RssShmem", pid)


def stat(pid: int) -> list[str]:
    """The words of /proc/PID/stat after the name, which may itself contain anything."""
    with open(f"/proc/{pid}/stat", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def state_and_parent(pid: int) -> tuple[str, int]:
    """The letter of what a process or thread does, and who started it; X and 0 where it is gone."""
    words = text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return (words[0], int(words[1])) if words else ("X", 0)


def busy_seconds(pid: int) -> float:
    """Seconds of processors that a process has taken, and those that it waited for; 0 if gone."""
    words = text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return sum(map(int, words[11:15])) / os.sysconf("SC_CLK_TCK") if words else 0.0


def resident(pid: int) -> int:
    """What a process has in memory, as the kernel keeps it ready; 0 where it is gone."""
    return resident_and_mapped(pid)[0]


def mapped(pid: int) -> int:
    """How much of that is pages of files and of shared memory."""
    return resident_and_mapped(pid)[1]


def resident_and_mapped(pid: int) -> tuple[int, int]:
    """Both, of one moment."""
    words = text(f"/proc/{pid}/statm").split()
    return (int(words[1]) * PAGE, int(words[2]) * PAGE) if words else (0, 0)


def thread_ids(pid: int) -> list[int]:
    """The threads of a process, the main one first."""
    try:
        return sorted(map(int, os.listdir(f"/proc/{pid}/task")))
    except OSError:
        return []


def threads(pid: int) -> int:
    """How many threads a process has; 0 where it is gone."""
    return figure(f"/proc/{pid}/status", "Threads:") or 0


def environment(pid: int) -> dict[str, str]:
    """The environment that a process was started with."""
    entries = (entry.partition("=") for entry in text(f"/proc/{pid}/environ").split("\0"))
    return {name: value for name, _, value in entries}


def command(pid: int) -> str:
    """The command line that a process was started with; empty where it is gone."""
    return text(f"/proc/{pid}/cmdline").rstrip("\0").replace("\0", " ")


def on_terminal(pid: int) -> bool:
    """Whether a process has a terminal open, or may not be asked; one that is gone has none."""
    try:
        numbers = os.listdir(f"/proc/{pid}/fd")
    except OSError as error:
        return isinstance(error, PermissionError)
    for number in numbers:
        with suppress(OSError):  # closed meanwhile
            if str(Path(f"/proc/{pid}/fd/{number}").readlink()).startswith(_TERMINALS):
                return True
    return False


def processes() -> list[int]:
    """All processes that can be seen."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def own_bytes() -> int:
    """The resident bytes of this process alone."""
    own = rollup()
    return own.rss if own is not None else 0


def children(pid: int) -> list[int]:
    """The direct children of a process."""
    tasks = (text(f"/proc/{pid}/task/{thread}/children") for thread in thread_ids(pid))
    return [int(child) for task in tasks for child in task.split()]


def descendants(pid: int) -> list[int]:
    """All processes below one, nearest first."""
    found: list[int] = []
    queue = children(pid)
    while queue:
        child = queue.pop(0)
        if child not in found:
            found.append(child)
            queue.extend(children(child))
    return found


@dataclass(frozen=True, kw_only=True)
class Tree:
    """A process and all that it has started.

    Where there is a keeper above it, the kernel hands that what the others have left behind.
    """

    main: int
    keeper: int = 0

    def members(self) -> list[int]:
        """Its processes, nearest first."""
        kept = descendants(self.keeper) if self.keeper else []
        return kept or [self.main, *descendants(self.main)]

    def memory(self) -> TreeMemory:
        """What they hold; of those that are gone, nothing."""
        read = {pid: found for pid in self.members() if (found := rollup(pid)) is not None}
        return TreeMemory(
            pss=sum(r.pss for r in read.values()),
            outside=shared_outside(list(read.values())),
            processes=len(read),
            main=read.get(self.main),
        )


@dataclass(frozen=True, kw_only=True)
class TreeMemory:
    """The memory of a process and all below it at one moment: the sum of PSS, shared pages once.

    This is what memory of a tree means in every command, table and recording. `outside` is what
    `shared_outside` says of it; `main` is its first process.
    """

    pss: int = 0
    outside: int = 0
    processes: int = 0
    main: Rollup | None = None

    @property
    def alone(self) -> int:
        """The sum of PSS as it is where no other process maps the tree's files."""
        return self.pss + self.outside


def tree_memory(pid: int) -> TreeMemory:
    """The memory of a process and all below it; of one that is gone, nothing."""
    return Tree(main=pid).memory()


def shared_outside(readings: Sequence[Rollup]) -> int:
    """What a tree's PSS lacks because processes outside it map the same library pages.

    plan and sweep add it: they speak of a run that is alone on the machine, where a training that
    happens to run beside the plan would otherwise halve what torch costs. All other commands say
    what is there now, and do not. A tree has at least the file pages of its largest process; alone,
    their PSS adds up to that or to more, and nothing is added.
    """
    return max(0, max((r.files for r in readings), default=0) - sum(r.pss_files for r in readings))


def outside_note(outside: int, whole: int) -> tuple[str, ...]:
    """What plan and sweep say of it, where it is no small part of a tree's memory."""
    if outside <= _SMALL_PART * whole:
        return ()
    note = (
        f"counted as if the run were alone on this machine: {format_bytes(outside)} of library "
        "pages are other processes' part of what they share, and are in these figures in full"
    )
    return (note,)


class PeakMeter:
    """The peak of this process's own memory between two points, kept by the kernel.

    The kernel's high-water mark of RSS is reset on `start` and read on `peak`, so that no spike is
    missed however short.
    Where the mark cannot be reset, `peak` is the present value.
    """

    def __init__(self) -> None:
        self.exact = True

    def start(self) -> None:
        try:
            with open("/proc/self/clear_refs", "w") as file:
                file.write("5")
        except OSError:
            self.exact = False

    def now(self) -> int:
        return tree_memory(os.getpid()).alone

    def own_peak(self) -> int:
        """The peak of this process's RSS since `start`."""
        return _status("VmHWM" if self.exact else "VmRSS")

    def peak(self) -> int:
        """The peak since `start`, of this process and its children as they are now."""
        mark = _status("VmHWM")
        tree = tree_memory(os.getpid())
        if tree.main is None or not self.exact:
            return tree.alone
        return tree.alone + max(0, mark - tree.main.rss)


def high_water(pid: int) -> int:
    """The most that a process has held, as the kernel remembers it; 0 where it is gone."""
    return _status("VmHWM", pid)


def reserved() -> int:
    """Private writable memory that this process has reserved, as RLIMIT_DATA counts it."""
    return _status("VmData")


def _status(field: str, pid: int | str = "self") -> int:
    return 1024 * (figure(f"/proc/{pid}/status", f"{field}:") or 0)
