"""How much memory a process may use: the smallest of cgroup v2, cgroup v1, RLIMIT and RAM.

All of it is read from `/proc` and `/sys`; `root` stands for another tree in tests.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from memfit.errors import Unsupported
from memfit.measure.kernel.proc import figure, text
from memfit.model import Limit

# cgroup v1 says "no limit" with the largest multiple of a page, and so do some container runtimes
# with other huge values. No machine has an exbibyte.
_NO_LIMIT = 2**60
_CGROUP_FILES = {2: ("memory.max", "memory.high"), 1: ("memory.limit_in_bytes",)}

# RLIMIT name, its row in /proc/self/limits, and what it counts.
_RLIMITS = (
    ("RLIMIT_AS", "Max address space", "counts address space, which is more than resident memory"),
    ("RLIMIT_DATA", "Max data size", "counts private writable address space"),
)


def memory_limit(root: Path = Path("/"), *, pid: int | str = "self") -> Limit:
    """The smallest limit that applies to a process, this one by default, and what sets it."""
    own = root / "proc" / str(pid)
    limits = [*_cgroups(root, own), *_rlimits(own), *_ram(root)]
    if not limits:
        raise Unsupported(
            "memfit cannot read this machine's memory limit: give one, such as --limit 16GiB"
        )
    return min(limits, key=lambda limit: limit.bytes)


def available(root: Path = Path("/")) -> int:
    """What the machine could still give, by the kernel's own estimate."""
    return 1024 * (figure(root / "proc/meminfo", "MemAvailable:") or 0)


def _cgroups(root: Path, own: Path) -> Iterator[Limit]:
    for version, files in _CGROUP_FILES.items():
        for group, name in _groups(root, own, version=version):
            for file in files:
                amount = figure(group / file, "")  # v2 writes "max" for none
                if amount is not None and amount < _NO_LIMIT:
                    yield Limit(bytes=amount, source=f"cgroup v{version} {file} of {name}")


def _rlimits(own: Path) -> Iterator[Limit]:
    for name, row, counts in _RLIMITS:
        soft = figure(own / "limits", row)
        if soft is not None:
            yield Limit(bytes=soft, source=f"{name} ({counts})")


def _ram(root: Path) -> Iterator[Limit]:
    total = figure(root / "proc/meminfo", "MemTotal:")
    if total is not None:
        yield Limit(bytes=total * 1024, source="RAM")
    elif root == Path("/") and "SC_PHYS_PAGES" in os.sysconf_names:  # systems without /proc
        pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
        yield Limit(bytes=pages * page, source="RAM")


def _groups(root: Path, own: Path, *, version: int) -> Iterator[tuple[Path, str]]:
    """The process's memory group and all groups above it that can be seen, lowest first."""
    group = _own_group(own, version=version)
    mount = _mount(root, version=version)
    if group is None or mount is None:
        return
    top, mounted = mount
    # In a container the mount shows only a part of the tree, and /proc may name the whole path.
    inside = group.relative_to(mounted) if group.is_relative_to(mounted) else PurePosixPath()
    if ".." in inside.parts:
        inside = PurePosixPath()
    for part in (inside, *inside.parents):
        yield root / top.relative_to("/") / part, str(PurePosixPath("/") / part)


def own_group(*, version: int) -> Path | None:
    """The folder of this process's own memory group, where it can be seen."""
    root = Path("/")
    return next((path for path, _ in _groups(root, root / "proc/self", version=version)), None)


def _own_group(own: Path, *, version: int) -> PurePosixPath | None:
    """The path of the process's group: `0::/path` in v2, `4:memory:/path` in v1."""
    for line in text(own / "cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "" if version == 2 else "memory" in controllers.split(","):
            return PurePosixPath(path)
    return None


def _mount(root: Path, *, version: int) -> tuple[PurePosixPath, PurePosixPath] | None:
    """Where the memory groups are mounted, and which part of their tree is."""
    for line in text(root / "proc/self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        memory = kind[0] == "cgroup" and "memory" in kind[2].split(",")
        if kind[0] == "cgroup2" if version == 2 else memory:
            return PurePosixPath(_unescape(fields[4])), PurePosixPath(_unescape(fields[3]))
    return None


def _unescape(path: str) -> str:
    return path.replace("\\040", " ").replace("\\011", "\t")
