"""skrl 2: driven through its own `Trainer.train` for a few steps and its agent's own `update`.

An agent's memory is written in full where it is made, long before anything is learned from it: here
it is only reserved, so that a run is planned on a machine that it does not fit. Of an update, the
amount of work alone is cut.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import prod
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from memfit.errors import SpecError, Unsupported
from memfit.formulas.run_rows import Wording, run_rows
from memfit.formulas.shared_rows import BUILT, TRAINING
from memfit.libraries import driven
from memfit.libraries.driven import DrivenTraining, changed, few, tensors_of, version_of
from memfit.model import Component, Readings
from memfit.model.busy_clock import BusyClock
from memfit.model.job import Job
from memfit.model.runspec import ArraySpec, CallbackSpec, RunSpec, UpdateSpec, VecEnvSpec
from memfit.model.training import Beside, Mark, ModuleHook, SkipTraining, Stop, Work

NAME, LENGTH = "skrl", "timesteps"
UPDATE = ("update",)
ON_POLICY = ("PPO", "A2C", "RPO")
OFF_POLICY = ("DQN", "DDQN", "DDPG", "TD3", "SAC")
_ROLLOUT_KNOBS = ("rollouts", "mini_batches", "learning_epochs")
_REPLAY_KNOBS = ("batch_size", "gradient_steps", "learning_starts")
_UNKNOWN = (
    f"memfit plans {', '.join(ON_POLICY + OFF_POLICY)} of skrl, one agent under a "
    "SequentialTrainer: measure this run with `memfit run`, or describe it in a spec (run.toml)"
)


class Skrl:
    """What memfit knows about skrl."""

    name = NAME
    extra = "skrl"
    packages = ("skrl", "gymnasium")
    imports = ("numpy", "gymnasium", "torch", "skrl.trainers.torch")
    begins = "train() of a skrl trainer"
    roles: Mapping[str, str] = {"skrl.Agent": "algorithm", "skrl.Wrapper": "wrapper"}
    begun = False

    def hooks(self, stop: Stop, job: Job) -> Iterator[Mapping[str, ModuleHook]]:
        def stop_at_train(module: ModuleType) -> None:
            base = module.Trainer

            def watch(cls: Any, /, **options: Any) -> None:
                super(base, cls).__init_subclass__(**options)
                if "train" in vars(cls):
                    cls.train = self._watched(cls.train, stop)

            base.train = self._watched(base.train, stop)
            base.__init_subclass__ = classmethod(watch)

        yield {"skrl.trainers.torch.base": stop_at_train, "skrl.memories.torch.base": _reserve}

    def _watched(self, train: Callable[..., Any], stop: Stop) -> Callable[..., Any]:
        @functools.wraps(train)
        def begin(trainer: Any, *args: Any, **kwargs: Any) -> Any:
            if not self.begun:
                self.begun = True
                try:
                    stop(SkrlTraining(trainer))
                except SkipTraining:
                    self.begun = False  # the next one is handed over instead
                    return None
            return train(trainer, *args, **kwargs)

        return begin

    def owns(self, made: Any) -> bool:
        return any(
            kind.__name__ == "Trainer" and kind.__module__.startswith("skrl.")
            for kind in type(made).__mro__
        )

    def begin(self, made: Any, stop: Stop) -> None:
        made.train()

    def build(self, facts: Mapping[str, Any], scratch: Path, stop: Stop) -> None:
        raise SpecError("a spec cannot describe a run of skrl: plan its script")

    def rows(self, spec: RunSpec, readings: Readings) -> Iterator[Component]:
        wording = Wording(
            built="the script's process where it would train",
            network=lambda network: f"agent.models ({spec.policy})",
            minibatch="minibatch.observations",
            observations=0 if spec.on_policy else 2,  # on-policy, update.sampled has them all
            activations="models.activations",
            inputs_are_saved=False,
        )
        return run_rows(spec, readings, wording)


class SkrlTraining(DrivenTraining):
    """One agent and its memory; `trainer` is about to train it."""

    def __init__(self, trainer: Any) -> None:
        self.trainer = trainer
        self.agent = trainer.agents
        self.env = trainer.env
        self.own: Any = getattr(self.agent, "memory", None)
        self.on_policy = bool(_names(self.agent) & set(ON_POLICY))
        self.sampled: Any = None  # the minibatches of an update that is surveyed
        self.rehearsed: Mapping[str, int] = {}  # the knobs at which the memory was filled

    def identity(self) -> object:
        return self.agent

    def prepare(self) -> None:
        known = _names(self.agent) & {*ON_POLICY, *OFF_POLICY}
        if not known or self.own is None or "SequentialTrainer" not in _names(self.trainer):
            raise Unsupported(f"{type(self.agent).__name__}: {_UNKNOWN}")
        agent, length = self.agent, self.trainer.cfg.timesteps
        self.own.export = False
        self.trainer.cfg.disable_progressbar = True
        agent.cfg.kl_threshold = 0  # an update that ends early would hide its peak
        # Most often, a memory has a row for each step of a rollout.
        as_rollouts = self.on_policy and agent.cfg.rollouts == self.own.memory_size
        self.rows_knob = "rollouts" if as_rollouts else "memory_size"
        self.saves = 0 < agent.checkpoint_interval <= length
        # The best checkpoint is known where returns are told, and a copy of it is held.
        self.keeps_best = self.saves and agent.write_interval > 0

    def facts(self) -> RunSpec:
        cfg, rows = self.agent.cfg, self.rows_knob
        knobs = {"n_envs": int(self.env.num_envs), LENGTH: int(self.trainer.cfg.timesteps)}
        known = _ROLLOUT_KNOBS if self.on_policy else _REPLAY_KNOBS
        knobs |= {name: int(getattr(cfg, name)) for name in known if hasattr(cfg, name)}
        knobs[rows] = int(self.own.memory_size)
        scale = {name: knobs[name] for name in ("batch_size", rows) if name in knobs}
        update = UpdateSpec(batch="batch_size", minibatch="batch_size")
        if self.on_policy:
            batch, times = f"{rows} * n_envs", f"ceil_div({LENGTH}, rollouts)"
            minibatch = f"ceil_div({batch}, mini_batches)"
            update = UpdateSpec(batch=batch, minibatch=minibatch, iterations=times)
        tensors = [tensor for model in self._models() for tensor in tensors_of(model)]
        networks = driven.networks_of(
            tensors, self._optimizers(), trained="models", others="targets"
        )
        return RunSpec(
            library=NAME,
            version=version_of(NAME),
            algorithm=type(self.agent).__name__,
            policy="+".join(dict.fromkeys(type(model).__name__ for model in self._models())),
            knobs=knobs,
            on_policy=self.on_policy,
            observation=tuple(
                _array(name, tuple(tensor.shape[2:]), (), "", tensor)
                for name, tensor in self.own.tensors.items()
                if name in ("observations", "states")
            ),
            arrays=tuple(self._arrays()),
            networks=tuple(networks),
            vec_env=VecEnvSpec(kind=type(self.env.unwrapped).__name__),
            callbacks=(CallbackSpec(kind="save"),) if self.saves else (),
            update=update,
            scale=scale,
            length=LENGTH,
            first_update="rollouts" if self.on_policy else "learning_starts + 1",
            buffer=type(self.own).__name__,
            device=str(self.agent.device),
        )

    def _arrays(self) -> Iterator[ArraySpec]:
        envs: int | str = int(self.own.num_envs)
        axes = (self.rows_knob, "n_envs" if envs == self.env.num_envs else envs)
        for name, tensor in self.own.tensors.items():
            where = f"agent.memory.tensors[{name!r}]: written in full when it is made"
            yield _array(f"memory.{name}", (*axes, *tensor.shape[2:]), BUILT, where, tensor)
        where = "Memory: an int64 for each row, of use for sequences alone"
        yield _array("memory.all_sequence_indexes", (*axes, 8), BUILT, where)
        if not getattr(self.own, "_replacement", False):
            drawn = axes if self.on_policy else (f"min({axes[0]}, {LENGTH})", axes[1])
            where = "memory.sample: a permutation of int64, and the last one until it is drawn"
            yield _array("update.indexes", (2, *drawn, 8), UPDATE, where)
        if self.on_policy:
            where = "memory.sample: all minibatches of an epoch are gathered before the first"
            yield _array("update.sampled", (*axes, self._sampled_bytes()), UPDATE, where)
            yield _array("update.returns", (2, *axes, 4), UPDATE, "returns and advantages")
        if self.keeps_best:
            held = sum(map(_state_bytes, self.agent.checkpoint_modules.values()))
            where = "agent.checkpoint_best_modules: a copy of what a checkpoint saves"
            yield _array("checkpoint.best", (held,), TRAINING, where)

    def _sampled_bytes(self) -> int:
        """What an update gathers of one step of one env."""
        tensors = self.own.tensors
        names = (name for name in self.agent._tensors_names if name in tensors)
        return sum(_row_bytes(tensors[name]) for name in names)

    def _models(self) -> list[Any]:
        return list({id(m): m for m in self.agent.models.values() if m is not None}.values())

    def _optimizers(self) -> list[Any]:
        held = vars(self.agent).values()
        return list({id(o): o for o in held if hasattr(o, "param_groups")}.values())

    def _minibatches(self, work: Work) -> int:
        return min(work.minibatches, int(self.agent.cfg.mini_batches)) if self.on_policy else 1

    def _rows(self, work: Work) -> int:
        if work.rehearsal:
            return work.knobs[self.rows_knob]
        # On-policy, each row is work of its own in an update: two sizes must have as many.
        needed = 0 if self.on_policy else -(-work.batch // int(self.own.num_envs))
        return max(2, min(needed, int(self.own.memory_size)))

    def collect(self, work: Work) -> None:
        import numpy as np

        agent, rows = self.agent, self._rows(work)
        if work.rehearsal and self.rehearsed == work.knobs:
            self._keep_best()
            self._step_env(rows, work)
            return
        self.sampled = agent.memory = None  # the last ones go first
        memory = agent.memory = self._memory(rows)
        done = self._step_env(rows, work)
        driven.repeat_rows(memory.tensors.values(), done, rows)
        # All rows are resident, but only as many as the run has steps are ever drawn from.
        steps = rows if self.on_policy or not work.rehearsal else work.knobs[LENGTH]
        memory.memory_index, memory.filled = (0, True) if steps >= rows else (steps, False)
        if work.rehearsal:
            memory.all_sequence_indexes[: rows * int(memory.num_envs)] = 1
            self.rehearsed = work.knobs
        elif self.on_policy:
            # Sampled beforehand: all of it has a row of its own, however few are worked on here.
            count = self._minibatches(work)
            indexes = np.arange(count * work.batch) % len(memory)
            self.sampled = memory.sample_by_index(
                names=agent._tensors_names, indexes=indexes, mini_batches=count
            )

    def _memory(self, rows: int) -> Any:
        """The run's own memory, or one like it with fewer rows."""
        if rows == self.own.memory_size:
            self.own.reset()
            return self.own
        memory = copy.copy(self.own)
        memory.memory_size = rows
        own = self.own.tensors.items()
        memory.tensors = {n: t.new_zeros((rows, *t.shape[1:])) for n, t in own}
        memory.tensors_view = {n: t.view((-1, *t.shape[2:])) for n, t in memory.tensors.items()}
        memory.reset()
        return memory

    def _step_env(self, rows: int, work: Work) -> int:
        """Let the run's own trainer step the env, twice at least; how many steps there were."""
        clock = BusyClock()
        steps = min(rows, 2)
        self._train(steps)
        each = clock.seconds() / steps
        more = min(rows, work.env_steps, int(work.env_seconds / max(each, 1e-6))) - steps
        if more > 0:
            self._train(more)
        return steps + max(0, more)

    def _train(self, steps: int) -> None:
        self.running_its_own = True
        with (
            changed(self.trainer.cfg, timesteps=steps),
            changed(self.agent, post_interaction=lambda **_: None),
        ):
            self.trainer.train()
        self.running_its_own = False

    def update(self, work: Work, mark: Mark) -> None:
        agent, memory = self.agent, self.agent.memory
        own_sample = memory.sample

        def sample(names: list[str], **how: Any) -> Any:
            return few(iter(self.sampled or own_sample(names, **how)), work)

        less = {"learning_epochs": work.epochs}
        if not self.on_policy:
            steps = max(2, work.minibatches) * int(getattr(agent.cfg, "policy_delay", 1))
            less = {"batch_size": work.batch, "gradient_steps": steps}
        fewer = {"sample": sample} if self.on_policy else {}
        with changed(memory, **fewer), changed(agent.cfg, **less):
            agent.enable_models_training_mode(True)
            agent.update(timestep=0, timesteps=int(self.trainer.cfg.timesteps))
            agent.enable_models_training_mode(False)

    def forward(self, samples: int) -> object:
        """Every trained model, as the losses call them."""
        import torch

        own = self.own.tensors.items()
        inputs = {name: torch.zeros(samples, *tensor.shape[2:]) for name, tensor in own}
        told = {"states": None, **inputs, "taken_actions": inputs["actions"]}
        return [
            model.act(told, role=role)
            for role, model in self.agent.models.items()
            if model is not None and any(p.requires_grad for p in model.parameters())
        ]

    def tensors(self) -> Iterable[Any]:
        yield from (tensor for model in self._models() for tensor in tensors_of(model))
        yield from (t for optimizer in self._optimizers() for t in driven.state_tensors(optimizer))

    def beside(self) -> Beside:
        env = self.env.unwrapped
        makers: Any = getattr(env, "env_fns", None)
        return Beside(
            make_env=(lambda: ((one := makers[0]()), one.reset())) if makers else None,
            workers=tuple(process.pid for process in getattr(env, "processes", ())),
            save=self._save if self.saves else None,
        )

    def _keep_best(self) -> None:
        """Copy what a checkpoint saves, as a run does where it is the best; the last copy goes."""
        if self.keeps_best:
            self.agent.checkpoint_best_modules["modules"] = {
                name: copy.deepcopy(self.agent._get_internal_value(module))
                for name, module in self.agent.checkpoint_modules.items()
            }

    def _save(self, folder: Path, replay: bool) -> None:
        self._keep_best()
        target = folder / "agent.pt"
        self.agent.save(str(target))
        target.unlink()


def _names(thing: Any) -> set[str]:
    return {kind.__name__ for kind in type(thing).__mro__}


def _row_bytes(tensor: Any) -> int:
    """Bytes of one step of one env."""
    return int(tensor.element_size() * prod(tensor.shape[2:]))


def _array(
    name: str, shape: tuple[int | str, ...], phases: tuple[str, ...], where: str, like: Any = None
) -> ArraySpec:
    """An array with the dtype of a tensor, else by its bytes."""
    return ArraySpec(
        name=name,
        shape=shape,
        dtype="uint8" if like is None else str(like.dtype).removeprefix("torch."),
        itemsize=1 if like is None else int(like.element_size()),
        kind="buffer" if name.startswith("memory.") else "copies",
        phases=phases,
        mapped=True,
        on_card=not name.endswith("indexes"),
        where=where,
    )


def _state_bytes(module: Any) -> int:
    """What a copy of a model's, a preprocessor's or an optimizer's state takes."""
    if hasattr(module, "param_groups"):
        return driven.state_bytes(module)
    return sum(int(tensor.nbytes) for tensor in module.state_dict().values())


def _reserve(module: ModuleType) -> None:
    """Let memories of skrl reserve what they hold, instead of writing all of it at once."""
    import numpy as np

    torch: Any = module.torch
    build = module.Memory.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        build(self, *args, **kwargs)
        # Only sequences of several steps need them.
        self.all_sequence_indexes = np.zeros(len(self.all_sequence_indexes), np.int64)

    def zeros(shape: Any, **options: Any) -> Any:
        empty = torch.empty(0, **options)
        if empty.device.type != "cpu":
            return torch.zeros(shape, **options)
        return torch.from_numpy(np.zeros(shape, empty.numpy().dtype))

    module.Memory.__init__ = init
    # What is no floating point, is not filled with NaN.
    own = {"zeros": zeros, "is_floating_point": lambda tensor: False}
    module.torch = SimpleNamespace(**{**vars(torch), **own})  # type: ignore[attr-defined]


LIBRARY = Skrl()
