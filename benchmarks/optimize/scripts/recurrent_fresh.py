"""RecurrentPPO on long vectors, as somebody tries an LSTM."""

from sb3_contrib import RecurrentPPO
from stable_baselines3.common.env_util import make_vec_env
from worlds import Readings

env = make_vec_env(lambda: Readings(600), n_envs=4)
model = RecurrentPPO(
    "MlpLstmPolicy",
    env,
    n_steps=128,
    batch_size=64,
    n_epochs=1,
    policy_kwargs={"lstm_hidden_size": 64, "n_lstm_layers": 1},
)
model.learn(30_000)
