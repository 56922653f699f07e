"""Planning a script changes none of the files that the script itself would change."""

from __future__ import annotations

import json

import pytest

from tests.cli.user import User

WRITES = """
    import os, pathlib, shutil, sqlite3
    import gymnasium, numpy, torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import CheckpointCallback, EvalCallback
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.logger import configure
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

    if __name__ == "__main__":
        shutil.rmtree("runs", ignore_errors=True)
        os.makedirs("runs/new")
        pathlib.Path("config.json").write_text("{}")
        with open("out.csv", "a") as file:
            file.write("4,5,6")
        numpy.save("data.npy", numpy.zeros(3))
        torch.save({"weights": torch.zeros(3)}, "weights.pt")
        sqlite3.connect("study.db").execute("create table if not exists trials (value)")
        env = make_vec_env(
            "CartPole-v1", n_envs=3, monitor_dir="logs", vec_env_cls=KIND, vec_env_kwargs=OPTIONS
        )
        model = PPO("MlpPolicy", env, n_steps=16, batch_size=16, device="cpu")
        model.set_logger(configure("runs/new", ["csv", "json", "log"]))
        model.save("model.zip")
        model = PPO.load("model.zip", env=env, device="cpu")
        callbacks = [
            CheckpointCallback(16, "checkpoints", save_replay_buffer=True, save_vecnormalize=True),
            EvalCallback(
                Monitor(gymnasium.make("CartPole-v1"), "logs/eval"),
                best_model_save_path="best",
                log_path="evaluations",
                eval_freq=16,
                n_eval_episodes=1,
            ),
        ]
        model.learn(1000, callback=callbacks, tb_log_name="tb")
    """


@pytest.mark.torch
@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("DummyVecEnv", "{}", []),
        pytest.param("DummyVecEnv", "{}", ["--probe"], marks=pytest.mark.slow),
        pytest.param("SubprocVecEnv", "{'start_method': 'fork'}", [], marks=pytest.mark.slow),
        pytest.param("SubprocVecEnv", "{}", [], marks=pytest.mark.slow),
    ],
    ids=["in one process", "in one process, probed", "forked", "fork server"],
)
def test_a_script_that_writes_everywhere_changes_nothing(
    user: User, kind: str, options: str, words: list[str]
) -> None:
    for name in ("out.csv", "logs/0.monitor.csv", "checkpoints/rl_model_16_steps.zip", "runs/a/b"):
        (user.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (user.folder / name).write_text("from an earlier run\n")
    text = WRITES.replace("KIND", kind).replace("OPTIONS", options)
    outcome = user.plan(user.script(text), "--format", "json", *words)
    assert outcome.err == ""
    assert outcome.code == 0
    plan = json.loads(outcome.out)
    assert plan["run"]["algorithm"] == "PPO"
    assert not any("did not finish" in note for note in plan["notes"]), plan["notes"]
