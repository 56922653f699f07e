"""An Optuna study over small trainings of stable-baselines3."""

import argparse

import optuna
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy

parser = argparse.ArgumentParser()
parser.add_argument("--trials", type=int, default=3)
args = parser.parse_args()


def objective(trial: optuna.Trial) -> float:
    """The mean reward after a short training."""
    model = PPO(
        "MlpPolicy",
        "CartPole-v1",
        n_steps=trial.suggest_categorical("n_steps", [128, 256, 512]),
        learning_rate=trial.suggest_float("learning_rate", 1e-4, 1e-2, log=True),
        device="cpu",
    )
    model.learn(1_024)
    return float(evaluate_policy(model, model.get_env(), n_eval_episodes=3)[0])


study = optuna.create_study(direction="maximize")
study.optimize(objective, n_trials=args.trials)
print(study.best_params)
