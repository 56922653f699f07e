"""One iteration of a training, with the main process's memory at its moments, as JSON.

``python -m benchmarks.fighter.moments TRAINING N_STEPS BATCH_SIZE``
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def high_water(*, again: bool = False) -> int:
    """The kernel's mark of the highest resident size, since it was last set back."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            if again:
                Path("/proc/self/clear_refs").write_text("5")
            return int(line.split()[1]) * 1024
    raise SystemExit("this kernel has no high-water mark")


def main() -> None:
    """Train for one rollout and one epoch."""
    from stable_baselines3.common.buffers import BaseBuffer
    from stable_baselines3.common.callbacks import BaseCallback

    from memfit.systems.fighter.described import Described
    from memfit.systems.fighter.fitted import Fitted
    from memfit.systems.fighter.settings import Settings

    training, n_steps, batch = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    settings = Settings(n_steps=n_steps, batch_size=batch, n_epochs=1, steps=2 * n_steps)
    marks: dict[str, int] = {}

    class Marks(BaseCallback):
        def _on_step(self) -> bool:
            return True

        def _on_rollout_end(self) -> None:
            marks["rollout"] = high_water(again=True)

    flatten = BaseBuffer.swap_and_flatten

    def watched(array: Any) -> Any:
        flat = flatten(array)
        if getattr(array, "ndim", 0) > 3:  # observations; the others are small
            marks["flatten"] = high_water(again=True)
        return flat

    BaseBuffer.swap_and_flatten = staticmethod(watched)  # type: ignore[assignment]
    made = {"as described": Described, "made to fit": Fitted}[training](settings)
    made.callbacks.append(Marks())
    try:
        for _ in made.train():
            marks["minibatches"] = high_water()
        buffer = made.model.rollout_buffer
        parameters = sum(p.numel() for p in made.model.policy.parameters())
        stored = getattr(buffer, "observation_nbytes", None)
        print(
            json.dumps(
                {
                    "training": training,
                    "n_steps": n_steps,
                    "batch_size": batch,
                    "marks": marks,
                    "parameters": parameters,
                    "observations": buffer.observations.nbytes if stored is None else stored,
                }
            )
        )
    finally:
        made.close()


if __name__ == "__main__":
    main()
