"""Where stable-baselines3 begins to learn, how many workers it starts, and how envs are made."""

from __future__ import annotations

import copy
import functools
import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from memfit.model.job import Job, Look
from memfit.model.training import ModuleHook, SkipTraining

OnLearn = Callable[[Any, int, Any, Callable[..., Any]], Any]
Notice = Callable[[list[Any]], None]
_VEC_ENVS = "stable_baselines3.common.vec_env"
_LEARNING = {
    "stable_baselines3.common.on_policy_algorithm": "OnPolicyAlgorithm",
    "stable_baselines3.common.off_policy_algorithm": "OffPolicyAlgorithm",
    "sb3_contrib.ppo_mask.ppo_mask": "MaskablePPO",
    "sb3_contrib.ppo_recurrent.ppo_recurrent": "RecurrentPPO",
}
_EVALUATION = ("stable_baselines3.common.evaluation", "sb3_contrib.common.maskable.evaluation")
_EPISODES = 2  # that show what an evaluation holds, where nothing of them is kept


def learn_hooks(on_learn: OnLearn, notice: Notice, job: Job) -> dict[str, ModuleHook]:
    """By module: `on_learn` gets models that begin to learn, `notice` how envs are made."""
    hooks: dict[str, ModuleHook] = {
        "stable_baselines3.common.base_class": _stop_at_learn(on_learn),
        f"{_VEC_ENVS}.subproc_vec_env": _few_workers(job, notice),
        f"{_VEC_ENVS}.dummy_vec_env": _notice_envs("DummyVecEnv", notice),
        "memfit.dropins.workers.vecenv": _notice_envs("LightVecEnv", notice),
    }
    if job.skip or job.look is Look.AFTER:
        hooks |= {module: _skipped_learn(name) for module, name in _LEARNING.items()}
    if job.look is Look.AFTER:
        hooks |= dict.fromkeys(_EVALUATION, _few_episodes)
    return hooks


def _stop_at_learn(on_learn: OnLearn) -> ModuleHook:
    """Hand the first model that begins to learn to `on_learn`.

    It gets the model, the steps, the callback, and a function that does the rest of learn's own
    set-up. It returns what that function returned where the run is to go on.
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
            except SkipTraining:
                base._setup_learn = _setup_learn  # the next one is handed over instead
                raise

        base._setup_learn = _setup_learn

    return hook


def _skipped_learn(name: str) -> ModuleHook:
    """Let `learn` return untrained where it is passed over."""

    def hook(module: ModuleType) -> None:
        algorithm = getattr(module, name)
        original = algorithm.learn

        def learn(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return original(self, *args, **kwargs)
            except SkipTraining:
                return self

        algorithm.learn = learn

    return hook


def _few_episodes(module: ModuleType) -> None:
    """Let `evaluate_policy` evaluate few episodes, unless a callback may keep some of each."""
    original = module.evaluate_policy
    signature = inspect.signature(original)

    @functools.wraps(original)
    def evaluate_policy(*args: Any, **options: Any) -> Any:
        call = signature.bind(*args, **options)
        call.apply_defaults()
        if call.arguments["callback"] is None:
            episodes = call.arguments["n_eval_episodes"]
            call.arguments["n_eval_episodes"] = min(episodes, _EPISODES)
        return original(*call.args, **call.kwargs)

    module.evaluate_policy = evaluate_policy  # type: ignore[attr-defined]


def _workers_to_start(job: Job, start_method: str) -> int:
    """A forked worker starts in no time, and two show what they share; others import anew."""
    if job.look in (Look.OBSERVE, Look.TRAIN):
        return sys.maxsize
    return 2 if start_method == "fork" or job.look is Look.REHEARSE else 1


def _few_workers(job: Job, notice: Notice) -> ModuleHook:
    """Start only some of a SubprocVecEnv's workers; the others answer as these do."""

    def hook(module: ModuleType) -> None:
        vec_env = module.SubprocVecEnv
        base = vec_env.__mro__[1]
        build = vec_env.__init__

        def init(self: Any, env_fns: list[Any], start_method: str | None = None) -> None:
            how = start_method or "forkserver"
            count = min(len(env_fns), _workers_to_start(job, how))
            build(self, env_fns[:count], start_method=start_method)
            self.memfit_start_method = how
            notice(env_fns)
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
        # Wrappers change answers in place, and stand-ins must not see that.
        self.last = self._remote.recv()
        return copy.deepcopy(self.last)

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
        return copy.deepcopy(self._peer.last)

    def close(self) -> None:
        self.waiting = False


def _notice_envs(name: str, notice: Notice) -> ModuleHook:
    """Tell `notice` which envs a vector env was made of."""

    def hook(module: ModuleType) -> None:
        vec_env = getattr(module, name)
        build = vec_env.__init__

        def init(self: Any, env_fns: list[Any], *args: Any, **kwargs: Any) -> None:
            env_fns = list(env_fns)
            build(self, env_fns, *args, **kwargs)
            notice(env_fns)

        vec_env.__init__ = init

    return hook
