"""A seeded training that is repeated until it is told to end, with the same parameters each time.

Run as a program: `training.py FOLDER KIND OWN RECORD`. It writes `ready` into the folder after the
first repetition, how many there were into `cycles`, and all at its end, with exit code 7, when a
file `end` is there. OWN names what it does beside training (`tests.harm.own`); RECORD is `-`, or
where `memfit.track()` records: nowhere else than under `memfit run` where it is `run`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

CODE = 7
LEAST = 4  # repetitions: most of what is done beside them begins in the third
STEP_SECONDS = 0.005  # between two steps: it is there to be looked at, not to compute
Beat = Callable[[], None]
Cycle = Callable[[Beat], str]


class Pulse:
    """Notes the longest time between two steps."""

    def __init__(self) -> None:
        self.longest = self.last = 0.0

    def __call__(self) -> None:
        now = time.monotonic()
        self.longest, self.last = max(self.longest, now - (self.last or now)), now


def digest(state: dict[str, Any]) -> str:
    found = hashlib.sha256()
    for name, value in sorted(state.items()):
        found.update(name.encode() + bytes(memoryview(value).cast("B")))
    return found.hexdigest()


def tensors(module: Any) -> str:
    return digest({k: v.detach().contiguous().numpy() for k, v in module.state_dict().items()})


def plain_numpy() -> Cycle:
    """For a quick look: a network by hand."""
    import numpy as np

    def cycle(beat: Beat) -> str:
        draw = np.random.default_rng(1)
        first, second = draw.normal(size=(8, 64)), draw.normal(size=(64, 2))
        for _ in range(40):
            inputs = draw.normal(size=(32, 8))
            hidden = np.tanh(inputs @ first)
            error = (hidden @ second - inputs[:, :2]) / 32
            inner = (error @ second.T) * (1 - hidden**2)
            second = second - 0.01 * hidden.T @ error
            first = first - 0.01 * inputs.T @ inner
            beat()
            time.sleep(STEP_SECONDS)
        return digest({"first": first, "second": second})

    return cycle


def plain_torch() -> Cycle:
    import torch

    torch.set_num_threads(1)
    return lambda beat: _trained(_small_net(torch), beat)


def compiled_torch() -> Cycle:
    import torch

    torch.set_num_threads(1)
    net = _small_net(torch)
    first = {name: value.clone() for name, value in net.state_dict().items()}
    compiled = torch.compile(net)

    def cycle(beat: Beat) -> str:
        net.load_state_dict(first)
        return _trained(net, beat, compiled)

    return cycle


def _small_net(torch: Any) -> Any:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2))


def _trained(net: Any, beat: Beat, called: Any = None) -> str:
    import torch

    draw = torch.Generator().manual_seed(2)
    for _ in range(40):
        inputs = torch.randn(32, 8, generator=draw)
        _update(net, (called or net)(inputs), inputs)
        beat()
        time.sleep(STEP_SECONDS)
    return tensors(net)


def _update(net: Any, outputs: Any, inputs: Any) -> None:
    """One step by hand: torch's own optimizers import its compiler, which takes seconds."""
    import torch

    net.zero_grad()
    (outputs - inputs[:, :2]).square().mean().backward()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.sub_(0.01 * parameter.grad)


def torch_with_workers() -> Cycle:
    import torch

    torch.set_num_threads(1)
    data = torch.utils.data.TensorDataset(
        torch.randn(640, 8, generator=torch.Generator().manual_seed(3))
    )

    def cycle(beat: Beat) -> str:
        net = _small_net(torch)
        draw = torch.Generator().manual_seed(4)
        loader = torch.utils.data.DataLoader(
            data, batch_size=16, shuffle=True, num_workers=2, generator=draw
        )
        for (inputs,) in loader:
            _update(net, net(inputs), inputs)
            beat()
            time.sleep(STEP_SECONDS)
        return tensors(net)

    return cycle


def sb3() -> Cycle:
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback

    class Beats(BaseCallback):
        def __init__(self, beat: Beat) -> None:
            super().__init__()
            self.beat = beat

        def _on_step(self) -> bool:
            self.beat()
            time.sleep(STEP_SECONDS)
            return True

    torch.set_num_threads(1)

    def cycle(beat: Beat) -> str:
        model = PPO("MlpPolicy", "CartPole-v1", n_steps=64, batch_size=32, seed=0, device="cpu")
        model.learn(128, callback=Beats(beat))
        return tensors(model.policy)

    return cycle


def jax_loop() -> Cycle:
    import jax  # type: ignore[import-not-found,unused-ignore]
    import jax.numpy as jnp  # type: ignore[import-not-found,unused-ignore]
    import numpy as np

    def updated(weights: Any, inputs: Any) -> Any:
        def loss(w: Any) -> Any:
            return jnp.mean((jnp.tanh(inputs @ w) - inputs[:, :2]) ** 2)

        return weights - 0.1 * jax.grad(loss)(weights)

    step: Any = jax.jit(updated)

    def cycle(beat: Beat) -> str:
        draw = np.random.default_rng(5)
        weights = jnp.asarray(draw.normal(size=(8, 2)))
        for _ in range(40):
            weights = step(weights, jnp.asarray(draw.normal(size=(32, 8))))
            weights.block_until_ready()
            beat()
            time.sleep(STEP_SECONDS)
        return digest({"weights": np.asarray(weights)})

    return cycle


KINDS: dict[str, Callable[[], Cycle]] = {
    "numpy": plain_numpy,
    "torch": plain_torch,
    "sb3": sb3,
    "workers": torch_with_workers,
    "compile": compiled_torch,
    "jax": jax_loop,
}


@contextlib.contextmanager
def tracked(record: str) -> Iterator[Any]:
    """A tracker, or something that is told the same in vain."""
    if record == "-":
        yield None
        return
    import memfit

    with memfit.track(None if record == "run" else record) as tracker:
        yield tracker


def tell(tracker: Any, number: int) -> None:
    if tracker is not None:
        tracker.phase(f"cycle {number}")
        tracker.step(number)
        tracker.holders({"net": 1000 + number})


def put(file: Path, text: str) -> None:
    """Write a file so that nobody sees half of it."""
    part = file.with_suffix(".part")
    part.write_text(text)
    part.replace(file)


def main(place: str, kind: str, own: str, record: str) -> int:
    folder, pulse = Path(place), Pulse()
    os.environ["TMPDIR"] = place  # what it leaves there is its own
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tests.harm.own import OWN, Own

    cycle = KINDS[kind]()
    begin = OWN[own] if own != "-" else Own
    found: list[str] = []
    with tracked(record) as tracker:
        beside = begin(folder, tracker)
        while True:
            digest_now = cycle(pulse)
            if digest_now not in found:
                found.append(digest_now)
            number = beside.cycles = beside.cycles + 1
            beside.each()
            tell(tracker, number)
            with contextlib.suppress(OSError):  # no descriptor is free
                if beside.writes:
                    put(folder / "cycles", str(number))
                if number == 2:
                    put(folder / "ready", str(os.getpid()))
            done = number >= LEAST and os.path.exists(folder / "end")  # noqa: PTH110
            if done:  # asked so, since that takes no descriptor
                break
        wrong = beside.end()
    said = {"cycles": number, "digests": found, "longest": pulse.longest, "wrong": wrong}
    put(folder / "said", json.dumps(said))
    beside.last()
    return CODE


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
