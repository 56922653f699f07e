"""Keeps a script that is being planned from changing any file but its own scratch.

What Python code writes, makes, moves or removes elsewhere is diverted to a shadow folder under the
scratch folder: a file is copied there before it is changed, a removed one is noted as gone, and
reading sees the shadow first. What goes around Python (C libraries, other programs) is refused by
the kernel; see `memfit.child.confinement`.

Every Python that the script starts loads this file by its path, so it stands alone.
"""

# ruff: noqa: PTH100, PTH118, PTH120 - pathlib calls the very functions that stand here

from __future__ import annotations

import builtins
import contextlib
import errno
import functools
import importlib
import io
import os
import stat
import sys
from collections.abc import Callable, Iterator
from typing import Any

Call = Callable[..., Any]

COPY_BYTES = 2**30  # a script that changes more than this in place is refused
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_READERS = ("stat", "lstat", "access", "readlink", "chdir")
_CHANGERS = ("truncate", "chmod", "chown", "lchown", "utime", "setxattr", "removexattr")
_BY_DESCRIPTOR = {"fchmod": "chmod", "fchown": "chown"}  # which take descriptors as well
_MAKERS = ("mkdir", "mkfifo", "mknod")
_REMOVERS = ("remove", "unlink", "rmdir")
_MOVERS = ("rename", "replace", "link", "symlink")
_NAMES = (*_READERS, *_CHANGERS, *_MAKERS, *_REMOVERS, *_MOVERS, "open", "listdir", "scandir")
_REAL: dict[str, Call] = {name: getattr(os, name) for name in _NAMES if hasattr(os, name)}
_open = io.open
# For every other Python: the same shield, then the customization that this file stands before.
_SITE = """\
import importlib.machinery, importlib.util, sys
spec = importlib.util.spec_from_file_location("_memfit_shield", {file!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
module.Shield({scratch!r}).install()
sys.path.remove({site!r})
spec = importlib.machinery.PathFinder.find_spec(__name__)
if spec is not None:
    spec.loader.exec_module(sys.modules[__name__])
"""


class Shield:
    """Diverts what this process, and every Python that it starts, would write elsewhere."""

    def __init__(self, scratch: str) -> None:
        self.scratch = os.path.realpath(scratch)
        self.shadow, self.gone = f"{self.scratch}/shadow", f"{self.scratch}/gone"
        self.free = tuple(f"{root}/" for root in (self.scratch, scratch, "/dev", "/proc"))
        self.copied = 0

    def install(self) -> None:
        """Stand before the functions that open, make, move and remove."""
        one_path: dict[str, Callable[[str], str]] = {
            **dict.fromkeys(_READERS, self.seen),
            **dict.fromkeys(_CHANGERS, functools.partial(self.own, copy=True)),
            **dict.fromkeys(_MAKERS, self.new),
        }
        for name, real in _REAL.items():
            if name in one_path:
                call = self._one_path(real, one_path[name])
            elif name in _REMOVERS:
                call = functools.partial(self._remove, real)
            elif name in _MOVERS:
                call = functools.partial(self._move, real, name)
            else:
                call = getattr(self, f"_{name}")
            self._stand_before(os, name, real, call)
        for name, by_path in _BY_DESCRIPTOR.items():
            call = self._one_path(_REAL[by_path], one_path[by_path])
            self._stand_before(os, name, getattr(os, name), call)
        self._stand_before(io, "open", _open, self._io_open)
        builtins.open = io.open
        if "tempfile" in sys.modules:  # it holds os.unlink as the default of an argument
            importlib.reload(sys.modules["tempfile"])
        site = f"{self.scratch}/site"
        _make_folders(site)
        with _open(f"{site}/sitecustomize.py", "w") as file:
            file.write(_SITE.format(file=__file__, scratch=self.scratch, site=site))
        others = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p != site]
        os.environ["PYTHONPATH"] = os.pathsep.join([site, *filter(None, others)])

    def _stand_before(self, module: Any, name: str, real: Call, call: Call) -> None:
        @functools.wraps(real)
        def stand_in(*args: Any, **options: Any) -> Any:
            try:
                return call(*args, **options)
            except OSError as error:  # the script knows its own paths, not the shadow's
                for part in ("filename", "filename2"):
                    if str(path := getattr(error, part)).startswith(self.shadow):
                        setattr(error, part, path.removeprefix(self.shadow))
                raise

        stand_in.__module__ = module.__name__  # so that it is pickled by its name
        setattr(module, name, stand_in)
        for able in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
            able.update({stand_in} if real in able else ())

    def hooks(self) -> dict[str, Callable[[Any], None]]:
        """For modules that open files in C: what to change in them when they are imported."""

        def sqlite(module: Any) -> None:
            connect = module.connect

            def shielded(database: Any, *args: Any, **options: Any) -> Any:
                if database in ("", b"", ":memory:", b":memory:") or options.get("uri"):
                    return connect(database, *args, **options)
                return connect(self.own(self.meant(database), copy=True), *args, **options)

            module.connect = shielded

        def torch(module: Any) -> None:
            writer = module._open_zipfile_writer_file
            build = writer.__init__

            def shielded(own: Any, name: Any) -> None:
                build(own, self.own(self.meant(name), copy=False))

            writer.__init__ = shielded

        return {"sqlite3.dbapi2": sqlite, "torch.serialization": torch}

    # -- where a path leads --------------------------------------------------------------------

    def meant(self, path: Any, dir_fd: int | None = None) -> str:
        """The absolute path that the script means, in its own view of the file system."""
        name = _folder(path) if isinstance(path, int) else os.fsdecode(path)
        full = os.path.abspath(name if dir_fd is None else os.path.join(_folder(dir_fd), name))
        return full.removeprefix(self.shadow) if full.startswith(self.shadow + "/") else full

    def seen(self, path: str) -> str:
        """The file that a reader of this path gets."""
        if path.startswith(self.free) or self._untouched():
            return path
        mine = self.shadow + path
        return mine if _there(mine) or self.removed(path) else path

    def _untouched(self) -> bool:
        return not (_there(self.shadow) or _there(self.gone))

    def removed(self, path: str) -> bool:
        """Whether the script removed this, or a folder above it."""
        while len(path) > 1 and _there(self.gone):
            if _there(f"{self.gone}{path}/.gone"):
                return True
            path = os.path.dirname(path)
        return False

    def own(self, path: str, *, copy: bool) -> str:
        """The file that a writer of this path gets; a copy where its content counts."""
        if path.startswith(self.free):
            return path
        mine, parent = self.shadow + path, os.path.dirname(path)
        copy = copy and self.seen(path) == path and _there(path)
        if _is_folder(self.seen(parent)):  # else the script gets the error it would get anyway
            _make_folders(self.shadow + parent)
        if copy:
            self._copy(path, mine)
        return mine

    def new(self, path: str) -> str:
        """The same for something that must not be there yet."""
        if _there(self.seen(path)):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        return self.own(path, copy=False)

    def _copy(self, path: str, mine: str) -> None:
        found = _REAL["stat"](path)
        if stat.S_ISDIR(found.st_mode):
            _make_folders(mine)
            return
        self.copied += found.st_size
        if not stat.S_ISREG(found.st_mode) or self.copied > COPY_BYTES:
            reason = "a plan changes no file, and this one cannot be copied to change the copy"
            raise PermissionError(errno.EPERM, reason, path)
        with _open(path, "rb") as source, _open(mine, "wb") as target:
            while block := source.read(2**20):
                target.write(block)
        _REAL["chmod"](mine, stat.S_IMODE(found.st_mode) | stat.S_IWUSR)

    def whole(self, path: str) -> str:
        """The same as `own`, with all that a folder holds."""
        mine = self.own(path, copy=True)
        if not path.startswith(self.free) and _is_folder(mine):
            for entry in list(self.entries(path)):
                self.whole(f"{path}/{entry.name}")
        return mine

    def forget(self, path: str) -> None:
        """Note that what stood here is gone."""
        if _there(path) and not path.startswith(self.free):
            _make_folders(self.gone + path)
            _open(f"{self.gone}{path}/.gone", "w").close()

    def entries(self, path: str) -> Iterator[Any]:
        """What a folder holds in the script's view."""
        here = self.seen(path)
        known: set[str] = set()
        for folder in dict.fromkeys((here, path)):
            if folder == here or (_is_folder(path) and not self.removed(path)):
                for entry in _REAL["scandir"](folder):
                    full = f"{path}/{entry.name}"
                    if entry.name not in known and (folder != path or not self.removed(full)):
                        known.add(entry.name)
                        yield entry

    # -- what the script calls -----------------------------------------------------------------

    def _one_path(self, real: Call, leads: Callable[[str], str]) -> Call:
        reads = leads == self.seen  # imports look at thousands of paths: no work for those

        def call(path: Any, *args: Any, dir_fd: int | None = None, **options: Any) -> Any:
            if isinstance(path, int) and (reads or not self._is_file(path)):
                return real(path, *args, **options)
            if reads and dir_fd is None and self._untouched():
                return real(path, *args, **options)
            where = leads(self.meant(path, dir_fd))
            return real(where if isinstance(path, int) else _spelled(path, where), *args, **options)

        return call

    def _is_file(self, fd: int) -> bool:
        """Whether a descriptor is of a file that has a name, which is changed in its place."""
        return _folder(fd).startswith("/") and _there(_folder(fd))

    def _to_open(self, path: str, writes: bool, empties: bool, makes: bool) -> str:
        now = self.seen(path)
        if not writes or _is_folder(now):
            return now
        return self.new(path) if makes else self.own(path, copy=not empties)

    def _io_open(self, file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
        if isinstance(file, int) or not isinstance(mode, str):
            return _open(file, mode, *args, **options)
        writes = bool(set(mode) & set("wax+"))
        if not writes and self._untouched():
            return _open(file, mode, *args, **options)
        where = self._to_open(self.meant(file), writes, "w" in mode, "x" in mode)
        return _open(_spelled(file, where), mode, *args, **options)

    def _open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        new = bool(flags & os.O_CREAT and flags & os.O_EXCL)
        # Only what may be made is: what is emptied must be there, in the shadow too.
        writes, empties = bool(flags & _WRITING), bool(flags & os.O_TRUNC and flags & os.O_CREAT)
        where = self._to_open(self.meant(path, dir_fd), writes, empties, new)
        return int(_REAL["open"](_spelled(path, where), flags, mode))

    def _remove(self, real: Call, path: Any, *, dir_fd: int | None = None) -> None:
        full = self.meant(path, dir_fd)
        where = self.seen(full)
        folder, of_folders = stat.S_ISDIR(_REAL["lstat"](where).st_mode), real is _REAL["rmdir"]
        wrong = 0 if folder == of_folders else errno.EISDIR if folder else errno.ENOTDIR
        if folder and of_folders and any(self.entries(full)):
            wrong = errno.ENOTEMPTY
        if wrong:
            raise OSError(wrong, os.strerror(wrong), full)
        if where != full or full.startswith(self.free):
            real(where)
        self.forget(full)

    def _move(self, real: Call, name: str, src: Any, dst: Any, *args: Any, **options: Any) -> None:
        end = self.meant(dst, options.pop("dst_dir_fd", None) or options.pop("dir_fd", None))
        if name == "symlink":
            real(src, self.new(end), *args, **options)
            return
        start = self.meant(src, options.pop("src_dir_fd", None))
        if name == "link":
            real(self.own(start, copy=True), self.new(end), **options)
            return
        real(self.whole(start), self.own(end, copy=False))
        self.forget(start)
        self.forget(end)

    def _listdir(self, path: Any = None) -> list[Any]:
        full = self.meant("." if path is None else path)
        if full.startswith(self.free):
            return list(_REAL["listdir"](path))
        names = [entry.name for entry in self.entries(full)]
        return [os.fsencode(name) for name in names] if isinstance(path, bytes) else names

    def _scandir(self, path: Any = None) -> Any:
        full = self.meant("." if path is None else path)
        if full.startswith(self.free) or isinstance(path, bytes) or self._untouched():
            return _REAL["scandir"](path)
        return _Listing(list(self.entries(full)))


class _Listing:
    """Stands for what `os.scandir` returns."""

    def __init__(self, entries: list[Any]) -> None:
        self._left = iter(entries)

    def __iter__(self) -> Iterator[Any]:
        return self._left

    def __next__(self) -> Any:
        return next(self._left)

    def __enter__(self) -> _Listing:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._left = iter(())


def _spelled(path: Any, where: str) -> Any:
    """The script's own spelling if it leads there anyway: errors then look as they always do."""
    return path if os.path.abspath(os.fsdecode(path)) == where else where


def _folder(fd: int) -> str:
    return str(_REAL["readlink"](f"/proc/self/fd/{fd}"))


def _there(path: str) -> bool:
    try:
        _REAL["lstat"](path)
    except (OSError, ValueError):
        return False
    return True


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(_REAL["stat"](path).st_mode)
    except (OSError, ValueError):
        return False


def _make_folders(path: str) -> None:
    if not _is_folder(path):
        _make_folders(os.path.dirname(path))
        with contextlib.suppress(FileExistsError):  # another process of the script was quicker
            _REAL["mkdir"](path)
