"""The smallest limit wins, wherever it is set. Trees of /proc and /sys are made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from memfit.errors import Unsupported
from memfit.measure.kernel.limits import memory_limit
from memfit.units import GIB, MIB

LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max stack size            8388608              unlimited            bytes
Max data size             {data}            unlimited            bytes
Max address space         {space}            unlimited            bytes
"""
V2_MOUNT = "31 23 0:28 {root} /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw\n"
V1_MOUNTS = (
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
    "35 31 0:32 {root} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
)


class Machine:
    """A tree of /proc and /sys with 64 GiB RAM and no limits, to be filled."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("proc/meminfo", f"MemTotal: {64 * GIB // 1024} kB\nMemFree: 1 kB\n")

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def v2(self, group: str, *, root: str = "/", **limits: str) -> None:
        self.write("proc/self/cgroup", f"0::{group}\n")
        self.write("proc/self/mountinfo", V2_MOUNT.format(root=root))
        self.group("sys/fs/cgroup", limits)

    def v1(self, group: str, *, root: str = "/", **limits: str) -> None:
        self.write("proc/self/cgroup", f"5:cpu:/\n4:memory:{group}\n0::/\n")
        self.write("proc/self/mountinfo", V1_MOUNTS.format(root=root))
        self.group("sys/fs/cgroup/memory", limits)

    def group(self, top: str, limits: dict[str, str]) -> None:
        for path, text in limits.items():
            self.write(f"{top}/{path}", text + "\n")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_machine_without_limits_has_its_ram(machine: Machine) -> None:
    limit = memory_limit(machine.root)
    assert (limit.bytes, limit.source) == (64 * GIB, "RAM")


@pytest.mark.parametrize("file", ["memory.max", "memory.high"])
@pytest.mark.parametrize("where", ["", "jobs/", "jobs/one/"])
def test_v2_at_any_height(machine: Machine, file: str, where: str) -> None:
    machine.v2("/jobs/one", **{"jobs/one/memory.max": "max", where + file: str(4 * GIB)})
    limit = memory_limit(machine.root)
    assert limit.bytes == 4 * GIB
    assert limit.source == f"cgroup v2 {file} of /{where.rstrip('/')}"


def test_v2_takes_the_smallest_of_the_hierarchy(machine: Machine) -> None:
    machine.v2(
        "/jobs/one",
        **{
            "jobs/one/memory.max": str(8 * GIB),
            "jobs/memory.max": str(2 * GIB),
            "memory.max": "max",
            "other/memory.max": "1",
        },
    )
    assert memory_limit(machine.root).bytes == 2 * GIB


def test_v2_inside_a_container_that_sees_a_part(machine: Machine) -> None:
    machine.v2("/docker/abc", root="/docker/abc", **{"memory.max": str(3 * GIB)})
    assert memory_limit(machine.root).bytes == 3 * GIB


@pytest.mark.parametrize("group", ["/../other", "/elsewhere"])
def test_v2_group_outside_the_mount(machine: Machine, group: str) -> None:
    machine.v2(group, root="/docker/abc", **{"memory.max": str(3 * GIB)})
    assert memory_limit(machine.root).bytes == 3 * GIB


@pytest.mark.parametrize("where", ["", "jobs/", "jobs/one/"])
def test_v1_at_any_height(machine: Machine, where: str) -> None:
    machine.v1("/jobs/one", **{where + "memory.limit_in_bytes": str(5 * GIB)})
    limit = memory_limit(machine.root)
    assert limit.bytes == 5 * GIB
    assert limit.source.startswith("cgroup v1")


def test_v1_huge_values_mean_none(machine: Machine) -> None:
    machine.v1("/jobs", **{"jobs/memory.limit_in_bytes": "9223372036854771712"})
    assert memory_limit(machine.root).source == "RAM"


def test_v1_inside_a_container(machine: Machine) -> None:
    machine.v1("/docker/abc", root="/docker/abc", **{"memory.limit_in_bytes": str(GIB)})
    assert memory_limit(machine.root).bytes == GIB


def test_address_space_says_what_it_counts(machine: Machine) -> None:
    machine.write("proc/self/limits", LIMITS.format(data="unlimited", space=512 * MIB))
    limit = memory_limit(machine.root)
    assert limit.bytes == 512 * MIB
    assert "RLIMIT_AS" in limit.source and "address space" in limit.source


def test_data_size(machine: Machine) -> None:
    machine.write("proc/self/limits", LIMITS.format(data=256 * MIB, space=512 * MIB))
    limit = memory_limit(machine.root)
    assert limit.bytes == 256 * MIB
    assert "RLIMIT_DATA" in limit.source


def test_damaged_files_are_passed_over(machine: Machine) -> None:
    machine.v2("/a", **{"a/memory.max": "soon"})
    machine.write("proc/self/mountinfo", "nonsense\n" + V2_MOUNT.format(root="/"))
    machine.write("proc/self/limits", "Max address space\n")
    assert memory_limit(machine.root).source == "RAM"


def test_a_machine_that_says_nothing(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="--limit 16GiB"):
        memory_limit(tmp_path)


def test_this_machine() -> None:
    assert memory_limit().bytes > MIB
