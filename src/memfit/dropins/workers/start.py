"""How a training starts template processes, and what it tells them to import."""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import pickletools
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from multiprocessing.spawn import get_executable
from pathlib import Path
from typing import Any

import numpy as np

from memfit.dropins.sharing.find import pwrite
from memfit.dropins.sharing.key import run_token
from memfit.dropins.workers.channel import Channel, Late, pair
from memfit.dropins.workers.template import DONE, LOAD, STATUS
from memfit.errors import MemfitError, TargetFailed, UsageError

# Larger arrays that factories hold lie in memory once, read-only, for all workers.
SHARED_FROM = 64 << 10
_ALIGN = 64
_ALWAYS = ("numpy", "gymnasium", "gymnasium.wrappers", "memfit.dropins.workers.loop")
# Longer pickles hold data, in which no names are looked for.
_NAMES_WITHIN = 8 << 20

_templates: dict[Any, Template] = {}
_lock = threading.Lock()
_ids = itertools.count()


class Template:
    """A template process, shared by all vector envs that were made in the same surroundings."""

    def __init__(self, key: Any) -> None:
        self._key = key
        self._users = 0
        self._owner = os.getpid()
        self._asking = threading.Lock()
        ours, theirs = pair()
        code = (
            f"import sys; sys.path[:] = {sys.path!r}; sys.argv[:] = {sys.argv!r}; "
            "from memfit.dropins.workers.template import main; "
            f"main({theirs.fileno()}, {os.getpid()})"
        )
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        command = [os.fsdecode(get_executable()), *flags, "-c", code]
        with theirs:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
            )
        self._channel = Channel(ours)

    def ask(
        self, kind: int, asked: Any, fds: tuple[int, ...] = (), seconds: float | None = None
    ) -> tuple[Any, list[int]]:
        """Its answer, and descriptors that came with it."""
        with self._asking:
            try:
                self._send(kind, pickle.dumps(asked), fds)
                status, payload, received = self._channel.answer(seconds, self._alive)
                answer = pickle.loads(payload)
            except (EOFError, BrokenPipeError):
                code = self._process.wait()
                raise TargetFailed(
                    f"the process that workers are forked from ended with code {code}. "
                    "Look above for its message; if there is none, memory may be too small"
                ) from None
            except Late:
                self._process.kill()
                raise TargetFailed(
                    f"importing what the envs need took more than {seconds:g} seconds. Raise "
                    "timeout=, or look which import of the env's module waits"
                ) from None
        if status != DONE:
            raise TargetFailed(
                f"a worker could not be started:\n{answer}\nLook into this traceback",
                output=answer,
            )
        return answer, received

    def _send(self, kind: int, payload: bytes, fds: tuple[int, ...]) -> None:
        try:
            self._channel.ask(kind, payload, fds)
        except BaseException:
            # Half a message may have been sent: nothing can be understood after it.
            self._process.kill()
            raise

    def _alive(self) -> bool:
        return self._process.poll() is None

    def status(self, pid: int) -> int | None:
        """How a worker ended; None if that cannot be said."""
        with contextlib.suppress(MemfitError, OSError):
            code: int | None = self.ask(STATUS, pid, seconds=10)[0]
            return code
        return None

    @classmethod
    def get(cls) -> Template:
        """That of these surroundings, started if there is none."""
        run_token()  # for what workers and the training share
        where = (tuple(sys.path), tuple(sys.argv), Path.cwd(), os.getpid())
        key = (*where, frozenset(os.environ.items()))
        with _lock:
            found = _templates.get(key)
            if found is None or not found._alive():
                found = _templates[key] = cls(key)
            found._users += 1
            return found

    def release(self) -> None:
        """Stop it when nobody uses it any more."""
        with _lock:
            self._users -= 1
            if self._users:
                return
            if _templates.get(self._key) is self:
                del _templates[self._key]
        self._channel.close()
        if os.getpid() == self._owner:
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


def load(
    template: Template,
    env_fns: Sequence[Callable[[], Any]],
    preload: Sequence[str],
    seconds: float | None,
) -> int:
    """Let a template import and unpickle what the workers will need; an id for forking."""
    found = next(_ids)
    factories, block = _packed(env_fns)
    try:
        asked = {
            "id": found,
            "preload": [*_ALWAYS, *preload],
            "derived": sorted({n for pickled, _ in factories for n in _env_modules(pickled)}),
            "registered": _registered(),
            "factories": factories,
        }
        failed, _ = template.ask(LOAD, asked, (block,), seconds)
    finally:
        os.close(block)
    for name in preload:
        if name in failed:
            raise UsageError(
                f"preload={name!r} cannot be imported:\n{failed[name]}\n"
                "Name modules as an import statement does, or leave it out"
            )
    return found


def _packed(env_fns: Sequence[Callable[[], Any]]) -> tuple[list[tuple[bytes, Any]], int]:
    """Each factory by itself, and a file of the large arrays that they hold, each once."""
    import cloudpickle

    block = os.memfd_create("memfit-factories", os.MFD_CLOEXEC)
    places: dict[tuple[int, int], tuple[int, int]] = {}
    factories = []
    held = []  # so that no address is given out again
    end = 0
    for i, build in enumerate(env_fns):
        used: list[tuple[int, int]] = []

        def apart(buffer: pickle.PickleBuffer, used: list[tuple[int, int]] = used) -> bool:
            nonlocal end
            raw = buffer.raw()
            if raw.nbytes < SHARED_FROM:
                return True
            address = int(np.frombuffer(raw, np.uint8).ctypes.data)
            key = (address, raw.nbytes)
            if key not in places:
                held.append(raw)
                pwrite(block, raw, end)
                places[key] = (end, raw.nbytes)
                end = -(-(end + raw.nbytes) // _ALIGN) * _ALIGN
            used.append(places[key])
            return False

        try:
            pickled = cloudpickle.dumps(build, protocol=5, buffer_callback=apart)
        except Exception as error:
            os.close(block)
            raise UsageError(
                f"the factory of env {i} cannot be sent to a worker: {error}. Create what "
                "cannot be pickled (files, locks, connections, windows) inside the factory"
            ) from error
        factories.append((pickled, used))
    return factories, block


def sent(value: Any) -> bytes:
    """Pickled for a worker, which does not know the script that was started."""
    import cloudpickle

    return bytes(cloudpickle.dumps(value))


def _env_modules(pickled: bytes) -> set[str]:
    """Modules of the registered envs whose ids a factory holds: they are imported late."""
    from gymnasium.envs.registration import registry

    found: set[str] = set()
    if len(pickled) > _NAMES_WITHIN:
        return found
    for _, word, _ in pickletools.genops(pickled):
        if not isinstance(word, str):
            continue
        module, _, name = word.rpartition(":")
        spec = registry.get(name)
        if spec is None:
            continue
        if module:
            found.add(module)
        if isinstance(spec.entry_point, str):
            found.add(spec.entry_point.partition(":")[0])
    return found


def _registered() -> list[bytes]:
    """Envs that were registered in this process: by its script, or by what it imported."""
    import cloudpickle
    from gymnasium.envs.registration import registry

    found = []
    for spec in registry.values():
        if str(spec.entry_point).startswith("gymnasium."):
            continue
        # What cannot be sent is missing in the worker, whose error then says so.
        with contextlib.suppress(Exception):
            found.append(cloudpickle.dumps(spec))
    return found
