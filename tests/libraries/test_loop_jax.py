"""What is heard of programs in JAX, and of those that learn without an optimizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from memfit.libraries.loop.jax_calls import JaxCalls
from memfit.libraries.loop.jax_programs import largest_program, largest_shape, program_arrays
from memfit.libraries.loop.signals import Signals
from memfit.libraries.loop.training import _named
from memfit.model.trial import TrialArrays, TrialEnd, TrialReading

TRIAL = TrialReading(updates=1, cycles=0, env_steps=0, seconds=1.0, ended=TrialEnd.SEEN)


class Hearing:
    pid = 0

    def __init__(self) -> None:
        import os

        self.pid = os.getpid()
        self.words: list[str] = []
        self.running: Callable[[], bool] | None = None

    def updated(self, running: Callable[[], bool] | None = None) -> None:
        self.words.append("update")
        self.running = running

    def called(self) -> None:
        self.words.append("call")

    def compiled(self, *, learns: bool) -> None:
        self.words.append("learns" if learns else "compiled")

    def awaits(self) -> None:
        self.words.append("awaits")


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Hearing, ModuleType]]:
    jax = pytest.importorskip("jax")
    for name in ("jit", "pmap", "grad", "value_and_grad", "vjp"):
        monkeypatch.setattr(jax, name, getattr(jax, name))
    monkeypatch.setattr(jax.stages.Compiled, "__call__", jax.stages.Compiled.__call__)
    hearing = Hearing()
    JaxCalls(hearing).hooks()["jax"](jax)
    yield hearing, jax
    hearing.pid = 0


class TestJax:
    def test_a_function_that_takes_gradients_learns(self, heard: Any) -> None:
        hearing, jax = heard

        @jax.jit  # type: ignore[untyped-decorator]
        def act(weights: Any) -> Any:
            return weights.sum()

        @jax.jit  # type: ignore[untyped-decorator]
        def update(weights: Any) -> Any:
            return weights - jax.grad(lambda w: (w**2).sum())(weights)

        weights = jax.numpy.ones(4)
        words = []
        for function in (act, update, act, update):
            hearing.words.clear()
            function(weights)
            words += [word for word in hearing.words if word in ("call", "update")]
        assert words == ["update", "call", "update"]  # what act does is known by its second call
        assert "learns" not in hearing.words  # which was told when it was compiled

    def test_the_gradient_itself_is_an_update_outside_of_what_is_compiled(self, heard: Any) -> None:
        hearing, jax = heard
        jax.value_and_grad(lambda w: (w**2).sum())(jax.numpy.ones(4))
        assert hearing.words.count("update") == 1

    def test_options_alone_methods_and_programs_compiled_ahead(self, heard: Any) -> None:
        hearing, jax = heard

        class Agent:
            def __init__(self) -> None:
                self.scale = 2.0

            @jax.jit(static_argnums=0)  # type: ignore[untyped-decorator]
            def update(self, weights: Any) -> Any:
                return self.scale * jax.grad(lambda w: (w**2).sum())(weights)

        weights = jax.numpy.ones(4)
        agent = Agent()
        assert float(agent.update(weights)[0]) == 4.0
        assert hearing.words.count("update") == 1
        hearing.words.clear()
        program = jax.jit(jax.grad(lambda w: (w**3).sum())).lower(weights).compile()
        assert float(program(weights)[0]) == 3.0
        assert hearing.words.count("update") == 1

    def test_a_compiled_function_is_itself_in_all_else(self, heard: Any) -> None:
        _, jax = heard

        def double(x: Any) -> Any:
            """Twice."""
            return 2 * x

        made = jax.jit(double)
        assert made.__name__ == "double" and made.__wrapped__ is double and made.__doc__ == "Twice."
        assert made.eval_shape(jax.numpy.ones(3)).shape == (3,)
        assert jax.vmap(made)(jax.numpy.ones(3)).shape == (3,)

    def test_what_was_dispatched_says_when_it_is_done(self, heard: Any) -> None:
        hearing, jax = heard
        result = jax.jit(jax.grad(lambda w: (w**2).sum()))(jax.numpy.ones(4))
        assert hearing.running is not None
        result.block_until_ready()
        assert not hearing.running()
        del result
        assert not hearing.running()


class TestWithoutAnOptimizer:
    def test_a_backward_pass_is_an_update_where_there_is_no_optimizer(self) -> None:
        signals, module = Signals(), ModuleType("autograd")
        module.backward = lambda: "done"  # type: ignore[attr-defined]
        module.grad = lambda: "done"  # type: ignore[attr-defined]
        signals.start(lambda: None, play_back=False)
        signals.hooks()["torch.autograd"](module)
        assert module.backward() == "done" and signals.updates == 1
        signals.optimizers = 1
        module.backward()
        assert signals.updates == 1

    def test_a_fit_of_an_estimator_is_one_update(self) -> None:
        signals = Signals()
        signals.start(lambda: None, play_back=False)

        class Estimator:
            def get_params(self) -> dict[str, Any]:
                return {}

            def predict(self) -> None:
                return

            def partial_fit(self) -> str:
                return "fitted"

            def fit(self) -> str:
                return self.partial_fit()

        signals.watched(Estimator)
        assert Estimator().fit() == "fitted"
        assert signals.updates == 1


class TestPrograms:
    def test_the_largest_shape_is_the_one_with_the_most_dimensions(self) -> None:
        text = "f32[64,32,8]{2,1,0} fusion(f32[2048,8] %a, s32[4]), f32[999999,99]"
        assert largest_shape(text, 2**20) == (64, 32, 8)
        assert largest_shape("nothing", 2**20) == (1,)

    def test_xla_says_what_a_program_takes(self) -> None:
        jax = pytest.importorskip("jax")

        def wide(x: Any) -> Any:
            rows = jax.lax.map(lambda n: jax.numpy.sin(x * n), jax.numpy.arange(64.0))
            return jax.numpy.sort(rows, axis=0).sum()

        function = jax.jit(wide)
        jax.block_until_ready(function(jax.numpy.ones((128, 256))))
        assert largest_program({"narrow"}) is None
        program = largest_program({"wide"})
        assert program is not None and program.name == "wide"
        assert program.temporaries >= 64 * 128 * 256 * 4
        assert program.shape == (64, 128, 256)
        whole = replace(TRIAL, whole=True, built=2**30, peaks={"update": 2**30 + 5 * 2**20})
        [(array, size)] = program_arrays(whole, {"wide"})
        assert array.name == "wide.temporaries" and array.shape == (64, 128, 256)
        assert size == 5 * 2**20  # so much of it was filled
        assert not list(program_arrays(replace(TRIAL, updates=0), {"wide"}))

    def test_trees_of_parameters_have_one_row_each(self) -> None:
        pairs = {
            "state.params['Dense_0']['kernel']": ("state.params", "parameters"),
            "main().target_params['w']": ("target_params", "parameters"),
            "state['params']['w']": ("state['params']", "parameters"),
            "storage.distribution_params[0]": ("storage.distribution_params[0]", "buffer"),
            "train_state.opt_state[0].mu['w']": ("train_state.opt_state", "optimizer"),
        }
        for path, found in pairs.items():
            held = TrialArrays(path=path, bytes=2**20, resident=2**20)
            assert _named(held, set(), 0) == found
