"""Edits of a script's text: made where its syntax says, and nothing else is touched."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from memfit.model import Changes
from memfit.model.changes import ALGORITHM, OBSERVATION, REPLAY, ROLLOUT, WORKERS
from memfit.sources.patched_script import patched

SCRIPT = '''#!/usr/bin/env python
"""A training: déjà vu."""

from __future__ import annotations

from stable_baselines3 import DQN, PPO  # the library
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import SubprocVecEnv

n_steps = 256
env = make_vec_env("é", n_envs=4, vec_env_cls=SubprocVecEnv)
model = PPO(
    "CnnPolicy",
    env,
    n_steps=n_steps,
    batch_size=64,  # small
)
other = SubprocVecEnv([make] * 2, start_method="spawn")
'''


def call_of(text: str, name: str) -> dict[str, str]:
    """The keywords of the only call of this name."""
    (call,) = (
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == name
    )
    return {str(k.arg): ast.unparse(k.value) for k in call.keywords}


def test_a_buffer_is_one_argument_and_one_import() -> None:
    made = patched(SCRIPT, Changes(parts={ROLLOUT: "WindowRolloutBuffer"}))
    assert call_of(made.text, "PPO")[ROLLOUT] == "WindowRolloutBuffer"
    assert "from memfit.dropins import WindowRolloutBuffer\n" in made.text
    assert "  # small\n" in made.text and "déjà vu" in made.text
    assert made.left == ()


def test_a_part_in_the_place_of_ppo_has_its_name_and_options() -> None:
    changes = Changes(parts={ALGORITHM: "MicroBatchPPO"}, options={"micro_batch_size": 32})
    made = patched(SCRIPT, changes)
    assert call_of(made.text, "MicroBatchPPO")["micro_batch_size"] == "32"
    assert "model = PPO(" not in made.text


def test_workers_are_replaced_wherever_they_are_named() -> None:
    made = patched(SCRIPT, Changes(parts={WORKERS: "LightVecEnv"}))
    assert call_of(made.text, "make_vec_env")["vec_env_cls"] == "LightVecEnv"
    assert call_of(made.text, "LightVecEnv") == {}  # it has one way to start workers


def test_workers_are_forked_by_what_starts_them() -> None:
    made = patched(SCRIPT, Changes(parts={WORKERS: "fork"}))
    assert call_of(made.text, "make_vec_env")["vec_env_kwargs"] == "{'start_method': 'fork'}"
    assert call_of(made.text, "SubprocVecEnv")["start_method"] == "'fork'"


def test_settings_of_malloc_come_before_every_other_import() -> None:
    variables = {"MALLOC_ARENA_MAX": "2", "MALLOC_MMAP_THRESHOLD_": "1048576"}
    made = patched(SCRIPT, Changes(variables=variables))
    tree = ast.parse(made.text)
    assert ast.get_docstring(tree) == "A training: déjà vu."
    names = [ast.unparse(node) for node in tree.body[1:4]]
    assert names == [
        "from __future__ import annotations",
        "from memfit.dropins import apply_settings",
        "apply_settings(arenas=2, mmap_threshold=1048576)",
    ]


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("batch_size = 64\n", "batch_size", "batch_size = 8\n"),
        ("BATCH_SIZE: int = 64\n", "batch_size", "BATCH_SIZE: int = 8\n"),
        (
            "parser.add_argument('--batch-size', type=int, default=64)\n",
            "batch_size",
            "parser.add_argument('--batch-size', type=int, default=8)\n",
        ),
    ],
)
def test_a_setting_is_changed_where_it_has_its_number(text: str, name: str, expected: str) -> None:
    assert patched(text, Changes(knobs={name: 8})).text == expected


@pytest.mark.parametrize(
    "changes",
    [
        Changes(parts={REPLAY: "WindowReplayBuffer"}),
        Changes(parts={OBSERVATION: "NarrowObservation"}),
        Changes(parts={WORKERS: "LightVecEnv"}),
        Changes(knobs={"batch_size": 8}),
    ],
)
def test_what_the_text_does_not_show_is_left_to_a_person(changes: Any) -> None:
    text = "import train\ntrain.main()\n"
    made = patched(text, changes)
    assert made.text == text and len(made.left) == 1


def test_an_argument_is_added_beside_unseen_ones_unless_it_may_be_among_them() -> None:
    text = "from stable_baselines3 import PPO\nmodel = PPO('MlpPolicy', env, **config)\n"
    changes = Changes(parts={ROLLOUT: "WindowRolloutBuffer"})
    assert "**config, rollout_buffer_class=WindowRolloutBuffer)" in patched(text, changes).text
    known = f"config = {{'{ROLLOUT}': Mine}}\n{text}"
    made = patched(known, changes)
    assert made.text == known and len(made.left) == 1


def test_a_diff_is_of_the_lines_that_changed() -> None:
    made = patched("batch_size = 64", Changes(knobs={"batch_size": 8}))
    assert made.diff("train.py").splitlines() == [
        "--- a/train.py",
        "+++ b/train.py",
        "@@ -1 +1 @@",
        "-batch_size = 64",
        "\\ No newline at end of file",
        "+batch_size = 8",
        "\\ No newline at end of file",
    ]
