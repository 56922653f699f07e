"""Run a training script unchanged, and stop it where it would begin to learn.

Hooks are put on modules as the script imports them, so that nothing is loaded that the script does
not load itself. They do four things: stop at `learn`, start few subprocess workers however many are
asked for, let arrays be reserved that this machine could never hold, and note how envs are made.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import mmap
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

ModuleHook = Callable[[ModuleType], None]
_MAP_NORESERVE = 0x4000


class ImportHooks(importlib.abc.MetaPathFinder):
    """Calls a hook when a named module has been imported."""

    def __init__(self, hooks: dict[str, ModuleHook]) -> None:
        self.hooks = hooks
        self._busy: set[str] = set()

    def install(self) -> None:
        for name in [n for n in self.hooks if n in sys.modules]:
            self.hooks.pop(name)(sys.modules[name])
        sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in self.hooks or name in self._busy:
            return None
        self._busy.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._busy.discard(name)
        if spec is None or spec.loader is None:
            return None
        hook, execute = self.hooks[name], spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            hook(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def stop_at_learn(on_learn: Callable[..., Any]) -> ModuleHook:
    """Hand the first model that starts to learn to `on_learn`.

    It gets the model, the steps, the callback, and a function that does the rest of learn's own
    set-up. It does not return, unless the run is to go on: then with what that function returned.
    """

    def hook(module: ModuleType) -> None:
        base = module.BaseAlgorithm
        setup = base._setup_learn

        def _setup_learn(
            self: Any,
            total_timesteps: int,
            callback: Any = None,
            reset_num_timesteps: bool = True,
            tb_log_name: str = "run",
            progress_bar: bool = False,
        ) -> Any:
            def rest(*, keep_callback: bool = False) -> Any:
                kept = callback if keep_callback else None
                return setup(self, total_timesteps, kept, reset_num_timesteps, "run", False)

            base._setup_learn = setup
            try:
                return on_learn(self, total_timesteps, callback, rest)
            except SkipLearn:
                base._setup_learn = _setup_learn  # the next one is handed over instead
                raise

        base._setup_learn = _setup_learn

    return hook


class SkipLearn(Exception):
    """Raised where a model that would begin to learn is to be passed over."""


_LEARNING = {
    "stable_baselines3.common.on_policy_algorithm": "OnPolicyAlgorithm",
    "stable_baselines3.common.off_policy_algorithm": "OffPolicyAlgorithm",
    "sb3_contrib.ppo_mask.ppo_mask": "MaskablePPO",
    "sb3_contrib.ppo_recurrent.ppo_recurrent": "RecurrentPPO",
}


def skipped_learns() -> dict[str, ModuleHook]:
    """Let `learn` return untrained where it is passed over."""

    def hook_of(name: str) -> ModuleHook:
        def hook(module: ModuleType) -> None:
            algorithm = getattr(module, name)
            original = algorithm.learn

            def learn(self: Any, *args: Any, **kwargs: Any) -> Any:
                try:
                    return original(self, *args, **kwargs)
                except SkipLearn:
                    return self

            algorithm.learn = learn

        return hook

    return {module: hook_of(name) for module, name in _LEARNING.items()}


def few_workers(
    started: Callable[[str], int], notice: Callable[[Any, list[Any]], None]
) -> ModuleHook:
    """Start only some of a SubprocVecEnv's workers; the others answer as these do."""

    def hook(module: ModuleType) -> None:
        vec_env = module.SubprocVecEnv
        base = vec_env.__mro__[1]
        build = vec_env.__init__

        def init(self: Any, env_fns: list[Any], start_method: str | None = None) -> None:
            count = min(len(env_fns), started(start_method or "forkserver"))
            build(self, env_fns[:count], start_method=start_method)
            self.memfit_start_method = start_method or "forkserver"
            self.memfit_started = count
            notice(self, env_fns)
            if count == len(env_fns):
                return
            real = [_Remembering(remote) for remote in self.remotes]
            stand_ins = [_StandIn(real[i % count]) for i in range(len(env_fns) - count)]
            self.remotes = (*real, *stand_ins)
            base.__init__(self, len(env_fns), self.observation_space, self.action_space)

        vec_env.__init__ = init

    return hook


class _Remembering:
    """A worker's connection that keeps its last answer for the stand-ins."""

    def __init__(self, remote: Any) -> None:
        self._remote = remote
        self.last: Any = None

    def recv(self) -> Any:
        self.last = self._remote.recv()
        return self.last

    def __getattr__(self, name: str) -> Any:
        return getattr(self._remote, name)


class _StandIn:
    """The connection of a worker that was not started: gives the answer of one that was."""

    def __init__(self, peer: _Remembering) -> None:
        self._peer = peer
        self.waiting = False

    def send(self, message: Any) -> None:
        self.waiting = True

    def recv(self) -> Any:
        self.waiting = False
        return self._peer.last

    def close(self) -> None:
        self.waiting = False


def notice_envs(notice: Callable[[Any, list[Any]], None]) -> ModuleHook:
    """Tell `notice` which envs a DummyVecEnv was made of."""

    def hook(module: ModuleType) -> None:
        vec_env = module.DummyVecEnv
        build = vec_env.__init__

        def init(self: Any, env_fns: list[Any]) -> None:
            build(self, env_fns)
            notice(self, env_fns)

        vec_env.__init__ = init

    return hook


def reserve_without_limit(numpy: ModuleType) -> None:
    """Let `numpy.zeros` reserve more than this machine has: pages that nobody touches are free.

    The kernel refuses a single mapping beyond RAM; the run's own machine may not. Arrays that it
    refuses are mapped without a reservation.
    """
    zeros = numpy.zeros

    def lazy_zeros(shape: Any, dtype: Any = float, order: Any = "C", **options: Any) -> Any:
        try:
            return zeros(shape, dtype, order, **options)
        except MemoryError as error:
            kind = numpy.dtype(dtype)
            dims = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
            count = 1
            for n in dims:
                count *= n
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
            try:
                memory = mmap.mmap(-1, count * kind.itemsize, flags=flags)
            except OSError:
                raise error from None
            return numpy.frombuffer(memory, dtype=kind).reshape(dims, order=order)

    numpy.zeros = lazy_zeros  # type: ignore[attr-defined]
