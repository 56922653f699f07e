"""Run specs that are wrong, through the real command line: one line that says what to fix."""

from __future__ import annotations

import pytest

from tests.cli.user import User

SPEC = """
    schema = 1
    name = "net"
    library = "torch"
    knobs = { batch_size = 64 }
    update = { batch = "batch_size" }
    network = [{ name = "net", input = [4], layers = [{ type = "Linear", args = [4, 2] }] }]
    """


@pytest.mark.torch
def test_the_spec_that_is_changed_below_is_planned(user: User) -> None:
    assert user.plan(user.script(SPEC, "run.toml"), "--format", "json").code == 0


@pytest.mark.torch
@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('library = "torch"', "library = []", "use one of stable-baselines3, torch"),
        ("[4, 2]", "[5, 2]", "its networks do not run"),
        ("[4, 2]", "[-4, 2]", "network[0] (net): layers[0]: Linear refuses its arguments"),
        ("input = [4]", 'input = [4], loss = "MSELos"', "(did you mean MSELoss?)"),
        ("input = [4]", 'input = [4], optimizer = "Adm"', "no optimizer 'Adm'"),
    ],
)
def test_a_wrong_spec_is_refused_in_one_line(user: User, old: str, new: str, says: str) -> None:
    assert old in SPEC
    outcome = user.fail(user.script(SPEC.replace(old, new), "run.toml"))
    assert outcome.code == 2
    assert says in outcome.message
    assert "Traceback" not in outcome.err


def test_a_setting_that_a_spec_cannot_change_is_refused(user: User) -> None:
    spec = """
        schema = 1
        name = "lander"
        library = "stable-baselines3"
        algorithm = "DQN"
        policy = "MlpPolicy"
        knobs = { total_timesteps = 1000, train_freq = 4 }
        observation = { shape = [8] }
        action = { discrete = 4 }
        """
    outcome = user.fail(user.script(spec, "run.toml"), "--set", "train_freq=8")
    assert outcome.code == 2
    assert outcome.message.endswith("--set cannot change train_freq: change it in the file")
