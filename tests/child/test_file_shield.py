"""A script under the shield works in its own view of the files, and changes none of them."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

START = """
import sys, tempfile  # some modules are there before the shield, and hold what they imported
from memfit.child import confinement
from memfit.child.file_shield import Shield
shield = Shield(sys.argv[1])
shield.install()
{landlock}
confinement.confine((sys.argv[1], "/dev", "/proc"))
import os, pathlib, shutil
"""
WITHOUT_LANDLOCK = "confinement._landlock = lambda folders, network: False"


VERSION = ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1)  # of Landlock


class Project:
    """A user's folder, and scripts that run in it under the shield."""

    def __init__(self, root: Path) -> None:
        self.folder, self.scratch = root / "project", root / "scratch"
        (self.folder / "runs" / "old").mkdir(parents=True)
        (self.scratch / "tmp").mkdir(parents=True)
        (self.folder / "monitor.csv").write_text("r,l,t\n1,2,3\n")
        (self.folder / "runs" / "old" / "model.zip").write_bytes(b"weights")
        (self.folder / "read-only.txt").write_text("kept")
        (self.folder / "read-only.txt").chmod(0o444)
        (self.folder / "link").symlink_to("runs")

    def files(self) -> dict[str, tuple[int, int, bytes]]:
        """Names, times, modes and contents of all that is in the folder."""
        return {
            str(file.relative_to(self.folder)): (
                file.lstat().st_mtime_ns,
                file.lstat().st_mode,
                file.read_bytes() if file.is_file() else b"",
            )
            for file in sorted(self.folder.rglob("*"))
        }

    def run(self, text: str, start: str = "") -> subprocess.CompletedProcess[str]:
        before = self.files()
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                START.format(landlock=start) + textwrap.dedent(text),
                str(self.scratch),
            ],
            cwd=self.folder,
            env={**os.environ, "TMPDIR": str(self.scratch / "tmp")},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert self.files() == before, "a file of the user's was changed"
        return done


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


VIEWS = {
    "writing": """
        open("new.csv", "w").write("a")
        assert open("new.csv").read() == "a"
        assert os.path.getsize("new.csv") == 1
        assert pathlib.Path("new.csv").exists()
        """,
    "overwriting": """
        with open("monitor.csv", "w") as file:
            file.write("other")
        assert pathlib.Path("monitor.csv").read_text() == "other"
        """,
    "appending": """
        with open("monitor.csv", "a") as file:
            file.write("4,5,6")
        assert open("monitor.csv").read() == "r,l,t\\n1,2,3\\n4,5,6"
        """,
    "changing in place": """
        with open("monitor.csv", "r+b") as file:
            file.seek(2)
            file.write(b"L")
        assert open("monitor.csv").read().startswith("r,L,t")
        """,
    "low-level opening": """
        fd = os.open("monitor.csv", os.O_WRONLY | os.O_APPEND)
        os.write(fd, b"end")
        os.close(fd)
        assert open("monitor.csv").read().endswith("end")
        os.close(os.open("monitor.csv", os.O_WRONLY | os.O_TRUNC))
        assert open("monitor.csv").read() == ""
        fd = os.open("made", os.O_CREAT | os.O_EXCL | os.O_RDWR)
        os.close(fd)
        try:
            os.open("made", os.O_CREAT | os.O_EXCL | os.O_RDWR)
        except FileExistsError:
            pass
        else:
            raise AssertionError("made twice")
        """,
    "exclusive creation": """
        try:
            open("monitor.csv", "x")
        except FileExistsError as error:
            assert error.filename == os.path.abspath("monitor.csv")
        else:
            raise AssertionError("created over an existing file")
        open("fresh", "x").close()
        """,
    "folders": """
        os.makedirs("runs/new/deep", exist_ok=True)
        pathlib.Path("runs/new/deep/x.txt").write_text("x")
        assert sorted(os.listdir("runs")) == ["new", "old"]
        assert sorted(e.name for e in os.scandir("runs")) == ["new", "old"]
        assert [str(p) for p in pathlib.Path("runs").glob("**/*.txt")][0].endswith("deep/x.txt")
        assert [f for _, _, files in os.walk("runs") for f in sorted(files)] != []
        os.makedirs("runs/old", exist_ok=True)
        try:
            os.mkdir("runs")
        except FileExistsError:
            pass
        else:
            raise AssertionError("made twice")
        """,
    "removing": """
        os.remove("monitor.csv")
        assert not os.path.exists("monitor.csv")
        assert "monitor.csv" not in os.listdir(".")
        try:
            open("monitor.csv")
        except FileNotFoundError as error:
            assert error.filename == os.path.abspath("monitor.csv")
        else:
            raise AssertionError("still there")
        open("monitor.csv", "w").write("again")
        assert open("monitor.csv").read() == "again"
        os.unlink("monitor.csv")
        assert not os.path.exists("monitor.csv")
        """,
    "removing a tree": """
        shutil.rmtree("runs")
        assert not os.path.exists("runs/old/model.zip")
        assert not os.path.isdir("runs")
        os.makedirs("runs")
        assert os.listdir("runs") == []
        """,
    "removing a tree that is partly new": """
        pathlib.Path("runs/old/more.zip").write_text("x")
        shutil.rmtree("runs/old")
        assert os.listdir("runs") == []
        os.rmdir("runs")
        assert not os.path.exists("runs")
        """,
    "removing what is not empty": """
        for call in (os.rmdir, os.remove):
            try:
                call("runs")
            except OSError:
                pass
            else:
                raise AssertionError("removed")
        """,
    "renaming": """
        os.rename("monitor.csv", "monitor.bak")
        assert open("monitor.bak").read().startswith("r,l,t")
        assert not os.path.exists("monitor.csv")
        os.rename("runs", "runs.1")
        assert open("runs.1/old/model.zip", "rb").read() == b"weights"
        assert not os.path.exists("runs")
        """,
    "replacing": """
        with tempfile.NamedTemporaryFile("w", dir=".", delete=False) as file:
            file.write("atomic")
        os.replace(file.name, "monitor.csv")
        assert open("monitor.csv").read() == "atomic"
        with tempfile.NamedTemporaryFile("w", dir=".") as file:
            assert os.path.exists(file.name)
        assert not os.path.exists(file.name)
        """,
    "copying": """
        shutil.copy2("monitor.csv", "copy.csv")
        shutil.copytree("runs", "copies")
        shutil.move("copy.csv", "copies/moved.csv")
        assert open("copies/moved.csv").read() == open("monitor.csv").read()
        assert sorted(os.listdir("copies")) == ["moved.csv", "old"]
        """,
    "links": """
        os.symlink("runs", "latest")
        assert os.path.islink("latest")
        open("link/in-link.txt", "w").write("x")
        assert open("link/in-link.txt").read() == "x"
        """,
    "modes and times": """
        os.chmod("monitor.csv", 0o600)
        os.utime("monitor.csv", (1, 1))
        pathlib.Path("monitor.csv").touch()
        pathlib.Path("touched").touch()
        os.truncate("monitor.csv", 2)
        assert open("monitor.csv").read() == "r,"
        """,
    "modes and times by descriptor": """
        with open("monitor.csv") as file:
            os.fchmod(file.fileno(), 0o600)
            os.utime(file.fileno(), (1, 1))
            os.chmod(file.fileno(), 0o640)
            os.fchown(file.fileno(), os.getuid(), os.getgid())
        found = os.stat("monitor.csv")
        assert (found.st_mode & 0o777, found.st_mtime) == (0o640, 1)
        read, write = os.pipe()
        os.fchmod(write, 0o600)
        """,
    "going into a new folder": """
        os.makedirs("runs/here")
        os.chdir("runs/here")
        open("a.txt", "w").write("x")
        assert open("../../monitor.csv").read().startswith("r,l,t")
        os.chdir("../..")
        assert open("runs/here/a.txt").read() == "x"
        """,
    "databases": """
        from memfit.child.import_hooks import ImportHooks
        ImportHooks([shield.hooks()]).install()
        import sqlite3
        for _ in range(2):
            with sqlite3.connect("study.db") as base:
                base.execute("create table if not exists trials (value)")
                base.execute("insert into trials values (1)")
            base.close()
        assert sqlite3.connect("study.db").execute("select count(*) from trials").fetchone() == (2,)
        sqlite3.connect(":memory:").execute("create table t (a)")
        """,
    "other Pythons": """
        import multiprocessing, subprocess
        code = "open('from-a-child.txt', 'w').write('x'); import os; os.makedirs('a/b')"
        subprocess.run([sys.executable, "-c", code], check=True)
        assert open("from-a-child.txt").read() == "x" and os.path.isdir("a/b")
        worker = multiprocessing.get_context("spawn").Process(target=os.rmdir, args=("a/b",))
        worker.start()
        worker.join()
        assert worker.exitcode == 0 and not os.path.exists("a/b")
        """,
    "what is free": """
        open(os.devnull, "w").write("x")
        with tempfile.TemporaryDirectory() as folder:
            open(folder + "/x", "w").write("x")
            os.rename(folder + "/x", folder + "/y")
        assert not os.path.exists(folder)
        from multiprocessing.shared_memory import SharedMemory
        memory = SharedMemory(create=True, size=64)
        memory.close()
        memory.unlink()
        """,
}


@pytest.mark.parametrize("start", ["", WITHOUT_LANDLOCK], ids=["kernel", "auditing"])
@pytest.mark.parametrize("name", VIEWS)
def test_a_script_sees_its_own_changes(project: Project, name: str, start: str) -> None:
    done = project.run(VIEWS[name], start)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


@pytest.mark.parametrize(
    "text",
    [
        "import _io; _io.open('x', 'w')",
        "import posix; posix.mkdir('x')",
        "import posix; posix.remove('monitor.csv')",
        "import io; io.FileIO('monitor.csv', 'w')",
    ],
)
@pytest.mark.parametrize("start", ["", WITHOUT_LANDLOCK], ids=["kernel", "auditing"])
def test_what_goes_around_the_shield_is_refused(project: Project, text: str, start: str) -> None:
    done = project.run(text, start)
    assert done.returncode == 1
    assert "PermissionError" in done.stderr


def test_other_programs_are_refused_by_the_kernel(project: Project) -> None:
    done = project.run(
        """
        import subprocess
        for command in ("echo x > new", "echo x >> monitor.csv", "rm -r runs", "mkdir made"):
            assert subprocess.run(command, shell=True).returncode != 0, command
        """
    )
    assert done.returncode == 0, done.stderr
    assert "Permission denied" in done.stderr


@pytest.mark.skipif(VERSION < 6, reason="Landlock has no scopes here (before Linux 6.12)")
def test_others_are_out_of_reach_where_landlock_has_scopes(project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as own:
        own.bind("")  # the kernel gives it an abstract name
        own.listen()
        done = project.run(
            f"""
            import signal, socket, subprocess
            own = subprocess.Popen(["sleep", "60"])
            own.kill()
            assert own.wait() == -9
            pair = socket.socketpair()
            for call in (
                lambda: os.kill({os.getpid()}, 0),
                lambda: socket.create_connection({server.getsockname()!r}),
                lambda: socket.socket(socket.AF_UNIX).connect({own.getsockname()!r}),
            ):
                try:
                    call()
                except PermissionError:
                    continue
                raise AssertionError("it was let through")
            """
        )
    assert done.returncode == 0, done.stderr


def test_a_file_too_large_to_copy_is_refused(project: Project) -> None:
    text = "import memfit.child.file_shield as s; s.COPY_BYTES = 4\n"
    done = project.run(text + "open('monitor.csv', 'w').close(); open('runs/old/model.zip', 'r+b')")
    assert done.returncode == 1
    assert "a plan changes no file" in done.stderr


def test_errors_are_those_of_python_itself(project: Project) -> None:
    text = """
        for call in (
            lambda: open("no/such/file", "w"),
            lambda: open("nosuch"),
            lambda: open("runs", "w"),
            lambda: open(""),
            lambda: os.mkdir("no/such"),
            lambda: os.rename("nosuch", "x"),
            lambda: os.remove("nosuch"),
            lambda: os.listdir("nosuch"),
            lambda: os.rmdir("monitor.csv"),
            lambda: os.stat("monitor.csv/x"),
            lambda: open("monitor.csv", "wq"),
            lambda: open(3.5),
        ):
            try:
                call()
            except Exception as error:
                print(type(error).__name__, getattr(error, "errno", None))
            else:
                print("nothing")
        """
    plain = subprocess.run(
        [sys.executable, "-c", "import os" + textwrap.dedent(text)],
        cwd=project.folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "nothing" not in plain.stdout
    assert project.run(text).stdout == plain.stdout
