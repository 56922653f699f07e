"""What a script does while it is planned is as in a run, and nothing of it stays."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from memfit.measure.children import sandbox
from memfit.model.job import Job, Status, TargetKind

GIVEN = shutil.which("unshare") and not subprocess.call(
    ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--net", "--fork", "true"],
    stderr=subprocess.DEVNULL,
)
pytestmark = pytest.mark.skipif(not GIVEN, reason="this kernel gives no namespaces")

HELPERS = """
import ctypes, os, pathlib, shutil, signal, socket, subprocess, sys

def refused(call, *kinds):
    try:
        call()
    except kinds or (OSError,) as error:
        return error
    raise AssertionError("it was let through")

def run(command):
    return subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout
"""


class Project:
    """A user's folder, and scripts in it that are run as a plan runs them."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "a, folder: of mine"
        (self.folder / "runs" / "old").mkdir(parents=True)
        self.file = self.folder / "monitor.csv"
        self.file.write_text("r,l,t\n1,2,3\n")
        (self.folder / "runs" / "old" / "model.zip").write_bytes(b"weights")

    def files(self) -> dict[str, tuple[object, ...]]:
        """Names, times, modes, owners and contents of all that is in the folder."""
        found: dict[str, tuple[object, ...]] = {}
        for path in sorted(self.folder.rglob("*")):
            told = path.lstat()
            text = path.read_bytes() if path.is_file() else b""
            name = str(path.relative_to(self.folder))
            found[name] = (told.st_mtime_ns, told.st_mode, told.st_uid, text)
        return found

    def run(self, text: str, *, network: bool = False) -> None:
        """Run a script to its end; its own assertions say what it should see."""
        script = self.folder / "train.py"
        script.write_text(f"{HELPERS}\n{textwrap.dedent(text)}\nprint('it has come to its end')\n")
        before = self.files()
        job = Job(kind=TargetKind.SCRIPT, target=str(script), network=network)
        ended = sandbox.run(job, timeout=60, memory=2**31)
        assert self.files() == before, "a file of the user's was changed"
        assert "it has come to its end" in ended.output, ended.answer.output + ended.output
        assert ended.answer.status is Status.NEVER_LEARNED
        assert ended.answer.confinement == "namespaces", ended.refused


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    found = Project(tmp_path)
    monkeypatch.chdir(found.folder)
    return found


def test_modes_owners_and_times_are_the_users(project: Project) -> None:
    """By descriptor, by other programs and by C, which no function of Python's sees."""
    project.run(
        """
        with open("monitor.csv") as file:
            os.fchmod(file.fileno(), 0o600)
            os.utime(file.fileno(), (1, 1))
            if not os.getuid():
                os.fchown(file.fileno(), 7, 7)
        told = os.stat("monitor.csv")
        assert (told.st_mode & 0o777, told.st_mtime) == (0o600, 1), told
        run("chmod 640 monitor.csv; touch -d @2 monitor.csv runs")
        assert ctypes.CDLL(None).chmod(b"runs/old/model.zip", 0o400) == 0
        told = os.stat("monitor.csv")
        assert (told.st_mode & 0o777, told.st_mtime) == (0o640, 2), told
        """
    )


def test_files_can_be_changed_as_in_a_run(project: Project) -> None:
    project.run(
        """
        os.close(os.open("monitor.csv", os.O_WRONLY | os.O_TRUNC))
        assert os.path.getsize("monitor.csv") == 0
        run("echo x >> monitor.csv; mkdir made; mv monitor.csv made; rm -r runs/old")
        assert open("made/monitor.csv").read() == "x\\n"
        assert os.listdir("runs") == []
        os.rename("runs", "runs.1")
        os.makedirs("logs/a")
        shutil.rmtree("logs")
        for folder in ("/tmp", "/dev/shm", os.environ["TMPDIR"]):
            path = pathlib.Path(folder, "left-by-a-plan")
            path.write_text("x")
            assert path.read_text() == "x"
        """
    )
    assert not Path("/tmp/left-by-a-plan").exists()


def test_shared_memory_vanishes(project: Project) -> None:
    before = os.listdir("/dev/shm")
    project.run(
        """
        from multiprocessing import resource_tracker, shared_memory
        memory = shared_memory.SharedMemory(create=True, size=2**20, name="left-by-a-plan")
        resource_tracker.unregister(memory._name, "shared_memory")
        assert "left-by-a-plan" in os.listdir("/dev/shm")
        """
    )
    assert os.listdir("/dev/shm") == before


def test_other_processes_get_no_signal(project: Project) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        project.run(
            f"""
            refused(lambda: os.kill({other.pid}, signal.SIGKILL))
            refused(lambda: os.kill({os.getpid()}, 0))
            assert not os.path.exists("/proc/{other.pid}/fd")
            """
        )
        assert other.poll() is None
        other.communicate(b"\n")
        assert other.returncode == 0


class Servers:
    """Sockets that listen, each under its address, and how many have come."""

    def __init__(self, folder: Path) -> None:
        self.came = 0
        kinds: tuple[tuple[int, tuple[str, int] | str], ...] = (
            (socket.AF_INET, ("127.0.0.1", 0)),
            (socket.AF_UNIX, ""),  # the kernel gives it an abstract name
            (socket.AF_UNIX, str(folder / "socket")),
        )
        self.sockets = [socket.socket(family) for family, _ in kinds]
        for one, (_, address) in zip(self.sockets, kinds, strict=True):
            one.bind(address)
            one.listen()
            threading.Thread(target=self._serve, args=(one,), daemon=True).start()

    def _serve(self, one: socket.socket) -> None:
        while True:
            try:
                one.accept()[0].close()
            except OSError:
                return
            self.came += 1


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    made = Servers(tmp_path)
    yield made
    for one in made.sockets:
        one.shutdown(socket.SHUT_RDWR)
        one.close()


def test_nothing_outside_is_reached(project: Project, servers: Servers) -> None:
    addresses = [one.getsockname() for one in servers.sockets]
    project.run(
        f"""
        addresses = {addresses!r}
        for address in addresses:
            family = socket.AF_INET if isinstance(address, tuple) else socket.AF_UNIX
            refused(lambda: socket.socket(family).connect(address), ConnectionRefusedError)
        refused(lambda: socket.create_connection(("192.0.2.1", 80), timeout=5))
        own = socket.create_server(("127.0.0.1", 0))
        socket.create_connection(own.getsockname()).close()
        """
    )
    assert servers.came == 0


def test_the_network_is_reached_where_that_is_asked_for(project: Project, servers: Servers) -> None:
    project.run(
        f"socket.create_connection({servers.sockets[0].getsockname()!r}).close()", network=True
    )
    assert servers.came == 1


def test_devices_are_those_of_a_training(project: Project) -> None:
    """Sockets and pipes in /dev (/dev/log, initctl) lead to processes outside."""
    project.run(
        """
        import pty, stat
        always = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm"}
        always |= {"fd", "stdin", "stdout", "stderr"}
        found = set(os.listdir("/dev"))
        assert {"null", "urandom", "ptmx", "pts", "shm", "fd", "stdin"} <= found, found
        gpus = ("nvidia", "dri", "kfd", "dxg")
        assert all(n in always or n.startswith(gpus) for n in found), found
        for folder, folders, names in os.walk("/dev"):
            folders[:] = [name for name in folders if name != "fd"]
            for mode in (os.lstat(f"{folder}/{name}").st_mode for name in names):
                assert stat.S_ISCHR(mode) or stat.S_ISLNK(mode), names
        open("/dev/null", "w").write("x")
        assert open("/dev/zero", "rb").read(2) == bytes(2)
        assert len(open("/dev/urandom", "rb").read(8)) == 8
        refused(lambda: open("/dev/new", "w"))
        assert run("echo a | cat /dev/stdin") == "a\\n"
        os.write(pty.openpty()[1], b"x")
        assert os.isatty(pty.openpty()[1])
        """
    )


@pytest.mark.skipif(os.getuid() != 0, reason="only root may make these")
def test_a_socket_and_a_pipe_in_dev_are_not_reached(project: Project) -> None:
    place = Path(f"/dev/memfit-test-{os.getpid()}")
    pipe, listening = Path(f"{place}.fifo"), socket.socket(socket.AF_UNIX)
    try:
        os.mkfifo(pipe)
        listening.bind(str(place))
        listening.listen()
        project.run(
            f"""
            refused(lambda: os.open({str(pipe)!r}, os.O_RDWR | os.O_NONBLOCK))
            refused(lambda: socket.socket(socket.AF_UNIX).connect({str(place)!r}))
            """
        )
    finally:
        listening.close()
        pipe.unlink(missing_ok=True)
        place.unlink(missing_ok=True)


@pytest.mark.skipif(os.getuid() != 0, reason="only root may write these")
def test_root_changes_no_setting_of_the_kernel_and_no_disk(project: Project) -> None:
    project.run(
        """
        import stat
        for path in ("/proc/sys/kernel/printk", "/proc/sysrq-trigger", "/sys/kernel/mm/ksm/run"):
            if os.path.exists(path):
                refused(lambda: os.open(path, os.O_WRONLY))
        for folder, _, names in os.walk("/dev"):
            assert not any(stat.S_ISBLK(os.stat(f"{folder}/{n}").st_mode) for n in names)
        refused(lambda: os.mknod("disk", stat.S_IFBLK | 0o600, os.makedev(254, 0)))
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.mount(b"none", b"/proc/sys", None, 4096 | 32, None)
        assert libc.umount2(b"/dev/shm", 2)
        assert libc.sethostname(b"x", 1)
        """
    )


CONTAINER = """
import os, sys
from memfit.measure.kernel import syscalls
syscalls.prctl(syscalls.DROP_FROM_BOUNDS, 21)  # CAP_SYS_ADMIN
os.execv(sys.executable, [sys.executable, "-c", *sys.argv[1:]])
"""
IN_CONTAINER = """
import sys
from memfit.measure.children import sandbox
from memfit.model.job import Job, TargetKind
ended = sandbox.run(Job(kind=TargetKind.SCRIPT, target=sys.argv[1]), timeout=60, memory=2**31)
print(ended.answer.confinement, ended.refused, ended.answer.output, ended.output)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="all other tests are of a plain user then")
def test_a_containers_root_that_may_not_mount(project: Project) -> None:
    """It has namespaces below one of users, where overlays are made otherwise."""
    os.chown(project.folder / "runs", 12345, 12345)
    script = project.folder / "train.py"
    script.write_text(
        f"""{HELPERS}
os.rename("runs", "runs.1")
assert os.listdir("runs.1") == ["old"] and not os.path.exists("runs")
run("chmod 600 monitor.csv; echo x > new; rm -r runs.1")
assert os.path.getsize("new") == 2
refused(lambda: os.kill({os.getpid()}, 0))
print("it has come to its end")
"""
    )
    before = project.files()
    words = [sys.executable, "-c", CONTAINER, IN_CONTAINER, "train.py"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("namespaces"), done.stdout
    assert "it has come to its end" in done.stdout, done.stdout
    assert project.files() == before
