"""Trainings run both ways, learn by the same gradients, and refuse what cannot work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv, VecTransposeImage

from memfit.errors import UsageError
from memfit.systems.ninja.__main__ import main
from memfit.systems.ninja.env import NinjaEnv, observation_space
from memfit.systems.ninja.extractor import GraphFeatures
from memfit.systems.ninja.settings import EnvironmentConfig, Memory, TrainingSettings
from memfit.systems.ninja.training import Rollout, build, train, vec_env

PARALLEL = EnvironmentConfig.for_parallel_training
SMALL = ["--n-envs", "2", "--n-steps", "8", "--steps", "16", "--batch-size", "8", "--epochs", "1"]
QUIET = ["--device", "cpu", "--quiet"]


def settings_of(config: EnvironmentConfig, **changes: object) -> TrainingSettings:
    plain = TrainingSettings(env=config, n_envs=2, n_steps=8, steps=16, batch_size=8, epochs=1)
    return replace(plain, **changes)  # type: ignore[arg-type]


def test_a_training_changes_all_its_networks_and_says_so() -> None:
    told: list[Rollout] = []
    settings = settings_of(PARALLEL(max_steps=4))
    with vec_env(settings) as env:
        model = build(settings, env)
        before = {name: p.clone() for name, p in model.policy.named_parameters()}
    model = train(settings, told.append)
    assert [one.steps for one in told] == [16]
    assert told[0].episodes == 4 and told[0].mean_return < 1
    after = dict(model.policy.named_parameters())
    assert all((after[name] != before[name]).any() for name in before)


@pytest.mark.slow
def test_both_ways_of_keeping_memory_learn_the_same() -> None:
    """float32 states come from float64 ones, and the policy sees float32 in any case."""
    # Graphs are not observed here, so they need not be built.
    described = EnvironmentConfig.as_described(memory=Memory.only("lazy_graphs"), max_steps=20)
    models = [train(settings_of(config)) for config in (described, PARALLEL(max_steps=20))]
    first, second = (dict(model.policy.named_parameters()) for model in models)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_terminal_observations_survive_reused_arrays() -> None:
    env = DummyVecEnv([lambda: NinjaEnv(PARALLEL(max_steps=3))])
    safe = DummyVecEnv([lambda: NinjaEnv(EnvironmentConfig.for_training(max_steps=3))])
    for one in (env, safe):
        one.seed(0)
        one.reset()
    for step in range(7):
        (_, _, done, infos), (_, _, _, others) = (one.step(np.array([2])) for one in (env, safe))
        if done[0]:
            mine, theirs = (one[0]["terminal_observation"] for one in (infos, others))
            assert all(np.array_equal(mine[name], theirs[name]) for name in mine), step


def channels_first(config: EnvironmentConfig) -> spaces.Dict:
    """The space as a policy gets it."""
    parts: dict[str, Any] = dict(observation_space(config).spaces)
    images = {name for name in parts if name.endswith(("frame", "view"))}
    return spaces.Dict(
        {
            name: VecTransposeImage.transpose_space(part) if name in images else part
            for name, part in parts.items()
        }
    )


def test_numbers_of_levels_give_the_features_that_whole_graphs_give() -> None:
    levels = ("first-steps", "climb")
    whole = EnvironmentConfig.for_training(levels=levels, graphs="arrays")
    numbers = replace(whole, graphs="number")
    torch.manual_seed(0)
    # In float64: sums over 126,848 edges depend on their order in float32.
    one = GraphFeatures(channels_first(whole)).double()
    other = GraphFeatures(channels_first(numbers), levels=levels).double()
    other.load_state_dict(one.state_dict())
    envs = [NinjaEnv(whole), NinjaEnv(numbers)]
    rows: list[list[dict[str, torch.Tensor]]] = [[], []]
    for seed in (0, 1, 2, 3):
        for env, kept in zip(envs, rows, strict=True):
            observation, _ = env.reset(seed=seed)
            kept.append({k: torch.tensor(v, dtype=torch.float64) for k, v in observation.items()})
    batches = [
        {
            name: torch.stack([row[name] for row in kept]).movedim(-1, 1)
            if kept[0][name].dim() == 3 and name.endswith(("frame", "view"))
            else torch.stack([row[name] for row in kept])
            for name in kept[0]
        }
        for kept in rows
    ]
    assert len(set(batches[1]["level"].flatten().tolist())) == 2
    torch.testing.assert_close(one(batches[0]), other(batches[1]))
    assert "level" in batches[1] and not any("graph" in name for name in batches[1])
    assert not any("graph_" in name for name in other.state_dict())


def test_training_with_graphs_runs_both_ways() -> None:
    settings = settings_of(PARALLEL(graphs="number"))
    model = train(settings)
    assert "level" in model.observation_space.spaces  # type: ignore[attr-defined]
    described = EnvironmentConfig.as_described(
        graphs="arrays", memory=Memory.only("shared_graphs", "shared_spaces")
    )
    train(settings_of(described, n_envs=1, n_steps=2, steps=2, batch_size=2))


def test_returns_of_random_actions_have_one_seed() -> None:
    from benchmarks.ninja.learner import returns_of

    config = PARALLEL(max_steps=10)
    assert returns_of(config, episodes=3, seed=4) == returns_of(config, episodes=3, seed=4)


@pytest.mark.parametrize("options", [[], ["--graphs"], ["--as-described", "--with", "lazy_graphs"]])
def test_a_run_says_what_it_took(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, *QUIET, "--max-steps", "4", *options]) == 0
    said = capsys.readouterr()
    assert "16 steps: mean return" in said.out
    assert "with 2 environments" in said.out and not said.err


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--n-envs", "0"], "--n-envs is 0: give 1 or more"),
        (["--steps", "0"], "--steps is 0"),
        (["--n-steps", "-1"], "--n-steps is -1"),
        (["--batch-size", "1"], "raise --batch-size"),
        (["--n-envs", "1", "--n-steps", "1"], "raise --n-envs or --n-steps"),
        (["--learning-rate", "0"], "give above 0 and below 1"),
        (["--seed", "-1"], "--seed is -1"),
        (["--max-steps", "0"], "--max-steps is 0"),
        (["--level", "nowhere"], "there is no level 'nowhere'"),
        (["--device", "nowhere"], "there is no device"),
        (["--with", "views"], "add --as-described"),
        (["--as-described", "--with", "magic"], "there is no change 'magic'"),
    ],
)
def test_what_cannot_work_is_refused(
    options: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*SMALL, *QUIET, *options]) == 2
    said = capsys.readouterr()
    assert told in said.err and said.err.count("\n") == 1
    assert not said.out


def test_a_level_without_exit_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    level = tmp_path / "closed.txt"
    level.write_text("@..S\n####\n")
    assert main([*SMALL, *QUIET, "--level", str(level)]) == 2
    assert "has no exit: draw one E" in capsys.readouterr().err


def test_numbers_that_are_none_are_refused() -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--n-envs", "many"])
    assert stop.value.code == 2


def test_help_loads_neither_torch_nor_pygame() -> None:
    code = (
        "import sys\nfrom memfit.systems.ninja.__main__ import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as stop:\n    assert stop.code == 0\n"
        "assert not {'torch', 'pygame', 'gymnasium', 'numpy'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for word in ("--as-described", "--profile-memory", "examples:", "generated:SEED", "minefield"):
        assert word in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("workers", [[], ["--workers", "fork"]])
def test_ctrl_c_ends_cleanly(workers: list[str]) -> None:
    command = [sys.executable, "-m", "memfit.systems.ninja", *SMALL, *QUIET, *workers]
    child = subprocess.Popen(
        [*command, "--steps", "9999999"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert child.stdout is not None
        child.stdout.readline()  # the first rollout
        # A terminal sends it to the whole group.
        os.killpg(child.pid, signal.SIGINT)
        out, err = child.communicate(timeout=60)
    finally:
        child.kill()
    assert child.returncode == 130
    assert "stopped after" in out
    assert "Traceback" not in err


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_workers_learn_the_same_as_one_process(method: str) -> None:
    """In a fresh process: a fork of one that has computed with torch may hang."""
    code = (
        "import torch\n"
        "from memfit.systems.ninja.settings import EnvironmentConfig, TrainingSettings\n"
        "from memfit.systems.ninja.training import train\n"
        "if __name__ == '__main__':\n"
        "    torch.set_num_threads(1)\n"
        "    config = EnvironmentConfig.for_parallel_training(max_steps=6)\n"
        "    plain = dict(env=config, n_envs=2, n_steps=8, steps=16, batch_size=8, epochs=1)\n"
        f"    apart = train(TrainingSettings(start_method={method!r}, **plain))\n"
        "    together = train(TrainingSettings(**plain))\n"
        "    for a, b in zip(apart.policy.parameters(), together.policy.parameters()):\n"
        "        assert torch.equal(a, b)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_settings_refuse_what_cannot_be() -> None:
    with pytest.raises(UsageError, match="give 1 or more"):
        TrainingSettings(n_envs=0)
