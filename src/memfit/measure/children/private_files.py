"""A view of all files that belongs to one disposable child: it may change all, and nothing changes.

Every folder is an overlay: the user's files lie below, read-only, and what the child writes goes to
layers in the scratch folder. Pages of files are those of the user's own, so that memory is counted
as without. /proc shows the child's own processes; /dev has what a training needs, and its shm is
the child's own. Called by `warden`, in a mount namespace that nothing else uses.
"""

# What runs before every plan loads little, and no pathlib.
# ruff: noqa: PTH101, PTH102, PTH103, PTH109, PTH110, PTH112, PTH114, PTH115, PTH116, PTH211

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress

from memfit.measure.kernel import syscalls as kernel

# What the kernel makes: shown as it is, read-only.
_MADE_BY_KERNEL = ("/proc", "/sys", "/dev")
# Settings of the kernel among what is otherwise of processes; root could write them.
_SETTINGS = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "mtrr")
# What a training finds in /dev. Sockets, pipes, disks and what else is there are not its own.
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_GPUS = ("dri", "kfd", "dxg")  # and all that begins with the next
_NVIDIA = "nvidia"
_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "fd/0",
    "stdout": "fd/1",
    "stderr": "fd/2",
    "ptmx": "pts/ptmx",
}
# A folder with other file systems in it is put together of its entries, if they are not too many.
_MOST_ENTRIES = 200


class PrivateFiles:
    """The new view, made below `layers`; `kept` is the one folder whose changes stay.

    `privileged` says that these are the mounts of the machine's own root.
    """

    def __init__(self, layers: str, kept: str, *, privileged: bool) -> None:
        self.layers = layers
        self.kept = kept
        self.privileged = privileged
        self.root = f"{layers}/root"
        self.read_only: list[str] = []
        self._numbers = iter(range(2**31))
        self._seen: set[str] = set()  # folders that need no copy
        self._mounted: list[str] = []

    def enter(self) -> None:
        """Change into the new view, in the folder in which this process is; OSError if not."""
        here = os.getcwd()
        kernel.mount("none", "/", flags=kernel.ALL_BELOW | kernel.PRIVATE)
        os.makedirs(self.root)
        os.chdir(self.layers)
        self._mounted = [m for m in mount_points() if not _is_in(m, *_MADE_BY_KERNEL, self.layers)]
        kernel.mount(self.root, self.root, flags=kernel.BIND)
        self._put_together("/")
        for place in sorted({here, os.environ.get("HOME", here), "/var/tmp"}):
            self._open_up(place)
        if _is_in(here, *self.read_only):
            raise OSError(f"no overlay can be put on {here}")
        self._add_proc()
        self._bind("/sys")
        self._add_dev()
        kernel.mount(self.kept, self.root + self.kept, flags=kernel.BIND)
        os.mkdir("empty")
        kernel.mount("empty", self.root + self.layers, flags=kernel.BIND)
        os.chdir(self.root)
        kernel.mount(".", "/", flags=kernel.MOVE)
        os.chroot(".")
        os.chdir(here)
        if os.access(".", os.W_OK):
            if not _is_ours("."):
                raise OSError(f"no namespace may have the owner or the group of {here}")
            os.close(os.open(".", os.O_TMPFILE | os.O_RDWR))

    def _open_up(self, place: str) -> None:
        """Let a folder be written that lies in one of another user.

        To write there, an overlay copies all folders above, which it cannot where their owner is
        not in the namespace. Such a folder gets an overlay of its own.
        """
        folder, in_others = "", False
        for name in place.strip("/").split("/"):
            folder = f"{folder}/{name}"
            if folder in self._seen or not os.path.isdir(folder):
                in_others = False
            elif not _is_ours(folder):
                in_others = True
            if in_others and os.access(folder, os.W_OK) and not _is_in(folder, *self.read_only):
                self._overlay(folder)
                in_others = False

    def _put_together(self, folder: str) -> None:
        """Show a folder that has other file systems in it, entry by entry."""
        self._seen.add(folder)
        with os.scandir(folder) as found:
            entries = list(found)
        if len(entries) > _MOST_ENTRIES:
            self._bind(folder)
            return
        for entry in entries:
            with suppress(OSError):  # it is not for this user, or gone: not there in the new view
                self._add(entry)
        os.chmod(self.root + folder, _mode(folder))

    def _add(self, entry: os.DirEntry[str]) -> None:
        path, here = entry.path, self.root + entry.path
        if entry.is_symlink():
            os.symlink(os.readlink(path), here)
        elif entry.is_file():
            os.close(os.open(here, os.O_CREAT | os.O_WRONLY))
            self._bind(path)
        elif entry.is_dir():
            os.mkdir(here)
            if any(m.startswith(f"{path}/") for m in self._mounted):
                self._put_together(path)
            elif path not in _MADE_BY_KERNEL:
                self._overlay(path)

    def _overlay(self, folder: str) -> None:
        self._seen.add(folder)
        number = next(self._numbers)
        upper, work = f"upper-{number}", f"work-{number}"
        os.mkdir(upper)
        os.mkdir(work)
        found = os.stat(folder)
        if os.geteuid() == 0:
            os.chown(upper, found.st_uid, found.st_gid)
        os.chmod(upper, _mode(folder))
        below = os.open(folder, os.O_PATH)  # its path could have a comma in it
        # Redirected folders can be renamed; see `memfit.child.renaming` for those that cannot.
        how = "redirect_dir=on" if self.privileged else "userxattr"
        options = f"lowerdir=/proc/self/fd/{below},upperdir={upper},workdir={work},volatile,{how}"
        try:
            kernel.mount("memfit", self.root + folder, "overlay", kernel.NO_DEVICES, options)
        except OSError:  # some file systems can be no layer
            self._bind(folder)
        finally:
            os.close(below)

    def _bind(self, path: str) -> None:
        """Show something as it is, with all below it; nothing can be changed there."""
        self.read_only.append(path)
        kernel.mount(path, self.root + path, flags=kernel.BIND | kernel.ALL_BELOW)
        kernel.make_read_only(self.root + path)

    def _add_proc(self) -> None:
        here = f"{self.root}/proc"
        flags = kernel.NO_SET_UID | kernel.NO_DEVICES | kernel.NO_PROGRAMS
        kernel.mount("proc", here, "proc", flags)
        for name in _SETTINGS:
            if os.path.exists(path := f"{here}/{name}"):
                kernel.mount(path, path, flags=kernel.BIND)
                kernel.make_read_only(path)

    def _add_dev(self) -> None:
        shared, here = os.statvfs("/dev/shm"), f"{self.root}/dev"
        flags = kernel.NO_SET_UID | kernel.NO_PROGRAMS
        kernel.mount("dev", here, "tmpfs", flags, "mode=755")
        for name, target in _LINKS.items():
            os.symlink(target, f"{here}/{name}")
        for name in sorted(os.listdir("/dev")):
            if name in (*_DEVICES, *_GPUS) or name.startswith(_NVIDIA):
                self._add_device(f"/dev/{name}")
        for name in ("shm", "pts"):
            os.mkdir(f"{here}/{name}")
        self.read_only.append("/dev")
        kernel.make_read_only(here)
        flags = kernel.NO_SET_UID | kernel.NO_DEVICES
        options = f"mode=1777,size={shared.f_blocks * shared.f_frsize}"
        kernel.mount("shm", f"{here}/shm", "tmpfs", flags, options)
        options = "newinstance,ptmxmode=0666,mode=0620"
        kernel.mount("devpts", f"{here}/pts", "devpts", kernel.NO_SET_UID, options)

    def _add_device(self, path: str) -> None:
        """Show a device, or those in a folder; what only lies beside them stays outside."""
        here, mode = self.root + path, os.lstat(path).st_mode
        if stat.S_ISDIR(mode):
            os.mkdir(here)
            for name in os.listdir(path):
                with suppress(OSError):  # it is not for this user, or gone
                    self._add_device(f"{path}/{name}")
        elif stat.S_ISLNK(mode):
            os.symlink(os.readlink(path), here)
        elif stat.S_ISCHR(mode):
            os.close(os.open(here, os.O_CREAT | os.O_WRONLY))
            kernel.mount(path, here, flags=kernel.BIND)


def mount_points() -> Iterator[str]:
    """Where this process sees file systems mounted."""
    with open("/proc/self/mountinfo", "rb") as file:
        for line in file:
            written = line.split()[4]  # a blank in it is \040
            yield os.fsdecode(written.decode("unicode_escape").encode("latin-1"))


def remove(folder: str) -> None:
    """Remove a scratch folder, also what its owner may not look into."""
    import shutil

    for base, names, _ in os.walk(folder):
        for path in (f"{base}/{name}" for name in names):
            if not os.path.islink(path) and not os.access(path, os.R_OK | os.W_OK | os.X_OK):
                with suppress(OSError):
                    os.chmod(path, stat.S_IRWXU)
    shutil.rmtree(folder, ignore_errors=True)


def _is_ours(path: str) -> bool:
    """Whether owner and group are known here; root knows all."""
    found = os.stat(path)
    own = (os.geteuid(), os.getegid())
    return own[0] == 0 or (found.st_uid, found.st_gid) == own


def _mode(folder: str) -> int:
    """A folder's mode for a copy that may be somebody else's: who may not write may not there."""
    mode = stat.S_IMODE(os.stat(folder).st_mode)
    return mode if os.access(folder, os.W_OK) else mode & ~0o222


def _is_in(path: str, *folders: str) -> bool:
    return any(f"{path}/".startswith(f"{folder.rstrip('/')}/") for folder in folders)
