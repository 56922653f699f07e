"""stable-baselines3 and sb3-contrib: driven through their own `collect_rollouts` and `train`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from memfit.formulas.run_rows import Wording, run_rows
from memfit.libraries.sb3.callback_frequency import notice_divisions
from memfit.libraries.sb3.changed_parts import ChangedParts
from memfit.libraries.sb3.changed_settings import changing
from memfit.libraries.sb3.facts import NAME
from memfit.libraries.sb3.learn_hooks import learn_hooks
from memfit.model import Component, Readings, RunSpec
from memfit.model.job import Job
from memfit.model.training import ModuleHook, Stop

ROLLOUTS = 3  # that a model of unknown length is taken to collect


class Sb3:
    """What memfit knows about stable-baselines3."""

    name = NAME
    extra = "sb3"
    packages = ("stable_baselines3", "sb3_contrib", "gymnasium")
    imports = ("numpy", "gymnasium", "torch", "stable_baselines3")
    begins = "learn() of a stable-baselines3 model"
    roles: Mapping[str, str] = {
        "stable_baselines3.VecEnv": "vector env",
        "stable_baselines3.VecEnvWrapper": "vector wrapper",
        "stable_baselines3.BaseAlgorithm": "algorithm",
        "stable_baselines3.BaseCallback": "callback",
    }

    def __init__(self) -> None:
        self.env_fns: list[Callable[[], Any]] = []
        self.begun_here: object = None  # a factory made it: nobody says how long it learns

    def hooks(self, stop: Stop, job: Job) -> Iterator[Mapping[str, ModuleHook]]:
        yield learn_hooks(self._on_learn(stop), self._notice, job)
        parts = ChangedParts(job)
        yield changing(job.knobs, parts.argument if parts.wanted else None)
        yield parts.hooks()
        yield notice_divisions()

    def _notice(self, env_fns: list[Any]) -> None:
        self.env_fns = env_fns

    def _on_learn(self, stop: Stop) -> Callable[..., Any]:
        def on_learn(model: Any, steps: int, callback: Any, rest: Callable[..., Any]) -> Any:
            from memfit.libraries.sb3.off_policy import OffPolicy
            from memfit.libraries.sb3.on_policy import OnPolicy

            kind = OnPolicy if hasattr(model, "rollout_buffer") else OffPolicy
            training = kind(
                model,
                length=None if model is self.begun_here else steps,
                callback=callback,
                rest=lambda: rest()[1],
                env_fns=self.env_fns,
            )
            stop(training)
            return rest(keep_callback=True)

        return on_learn

    def owns(self, made: Any) -> bool:
        return any(kind.__name__ == "BaseAlgorithm" for kind in type(made).__mro__)

    def begin(self, made: Any, stop: Stop) -> None:
        self.begun_here = made
        steps = getattr(made, "buffer_size", 0)
        if hasattr(made, "rollout_buffer"):
            steps = ROLLOUTS * int(made.n_steps) * int(made.n_envs)
        made.learn(steps)

    def build(self, facts: Mapping[str, Any], scratch: Path, stop: Stop) -> None:
        from memfit.libraries.sb3.described_run import learn

        learn(facts, scratch)

    def rows(self, spec: RunSpec, readings: Readings) -> Iterator[Component]:
        wording = Wording(
            built="the script's process where it would learn",
            network=lambda network: f"model.policy ({spec.policy})",
            minibatch="minibatch.observations",
            minibatch_where="the gathered minibatch as tensors, in the space's own dtype",
            observations=1 if spec.on_policy else 2,  # off-policy also the next ones
            activations="policy.activations",
            activations_where="two small forward passes of the policy: tensors saved for backward",
            inputs_are_saved=False,
        )
        return run_rows(spec, readings, wording)


LIBRARY = Sb3()
