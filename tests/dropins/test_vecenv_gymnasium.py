"""One contract for Gymnasium's vector envs and the light one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from memfit.dropins import LightVectorEnv
from memfit.errors import TargetFailed, UsageError
from tests.dropins import vecenv_envs
from tests.dropins.vecenv_envs import SPACES, Bad, Other, Walk, same, walks

Maker = Callable[..., VectorEnv[Any, Any, Any]]
KINDS: dict[str, Maker] = {
    "sync": SyncVectorEnv,
    "async": lambda envs, **options: AsyncVectorEnv(envs, context="fork", **options),
    "light, 1 worker": lambda envs, **options: LightVectorEnv(envs, workers=1, **options),
    "light, 2 workers": lambda envs, **options: LightVectorEnv(envs, workers=2, **options),
}
MORE = {
    "text": spaces.Text(5),
    "nested": spaces.Dict(
        {
            "in": spaces.Dict({"t": spaces.Text(3), "x": spaces.Box(0, 1, (2,))}),
            "n": SPACES["tuple"],
        }
    ),
    "sequence": spaces.Sequence(spaces.Discrete(3)),
}
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest) -> Maker:
    return KINDS[request.param]


def played(env: VectorEnv[Any, Any, Any], steps: int, actions: Any) -> list[Any]:
    first = env.reset(seed=3)
    return [first, *(env.step(actions[step % len(actions)]) for step in range(steps))]


ACTIONS = np.random.default_rng(0).integers(0, 4, (9, 3))


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
@pytest.mark.parametrize("kind", [*SPACES, *MORE])
def test_steps_are_those_of_sync(
    kind: str, mode: AutoresetMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, space in MORE.items():
        monkeypatch.setitem(vecenv_envs.SPACES, name, space)
    space = vecenv_envs.SPACES[kind]

    def build() -> Walk:
        from tests.dropins import vecenv_envs as there

        there.SPACES[kind] = space
        return Walk(kind)

    found = {}
    for name in ("sync", "light, 2 workers"):
        env = KINDS[name]([build] * 3, autoreset_mode=mode)
        found[name] = played(env, 30, ACTIONS)
        spaces_of = (env.observation_space, env.single_observation_space, env.action_space)
        found[name] += [env.metadata, repr(spaces_of)]
        env.close()
    ours, theirs = found["light, 2 workers"], found["sync"]
    for mine, other in zip(ours, theirs, strict=True):
        if isinstance(mine, tuple):
            assert same(mine[:-1], other[:-1])
            assert same(*(dict(sorted(infos.items())) for infos in (mine[-1], other[-1])))
        else:
            assert mine == other


def test_an_env_that_ended_is_reset_at_its_next_step(make: Maker) -> None:
    env = make(walks(3), autoreset_mode="NextStep")
    try:
        assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
        env.reset(seed=0)
        over = np.zeros(3, np.bool_)
        for _ in range(25):
            _, rewards, ended, cut, infos = env.step(np.ones(3, np.int64))
            assert rewards.dtype == np.float64 and ended.dtype == cut.dtype == np.bool_
            assert not (ended | cut)[over].any() and (rewards[over] == 0).all()
            assert "level" not in infos or (infos["_level"] == over).all()
            over = ended | cut
    finally:
        env.close()


def test_only_masked_envs_are_reset_where_autoreset_is_off(make: Maker) -> None:
    env = make(walks(3), autoreset_mode=AutoresetMode.DISABLED)
    try:
        last, _ = env.reset(seed=0)
        resets = 0
        for _ in range(25):
            last, _, ended, cut, _ = env.step(np.ones(3, np.int64))
            over = ended | cut
            if over.any():
                before = last.copy()
                last[:] = 9.0  # a change of what was handed out changes no env
                last, infos = env.reset(options={"reset_mask": over.copy()})
                assert (last[~over] == before[~over]).all() and (last[over] != before[over]).any()
                assert (infos["_level"] == over).all()
                resets += 1
        assert resets > 3
    finally:
        env.close()


def test_attributes_calls_and_pictures(make: Maker) -> None:
    env: Any = make(walks(3))
    try:
        env.reset(seed=[1, 2, 3])
        assert env.np_random_seed == (1, 2, 3)
        assert len(env.np_random) == 3
        env.set_attr("level", [1, 2, 3])
        assert env.get_attr("level") == (1, 2, 3)
        env.set_attr("level", 5)
        assert env.call("add", 1, twice=True) == (7, 7, 7)
        pictures = env.render()
        assert pictures is not None and len(pictures) == 3
        assert env.render_mode == "rgb_array" and env.num_envs == 3
        with pytest.raises(ValueError, match=r"3 envs|3 environments"):
            env.set_attr("level", [1, 2])
    finally:
        env.close()


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-1, 1, (2,)),
        spaces.MultiDiscrete([3, 4]),
        spaces.Dict({"x": spaces.Box(-1, 1, (2,)), "y": spaces.Discrete(3)}),
        spaces.Tuple((spaces.Discrete(3), spaces.MultiBinary(2))),
    ],
)
def test_envs_get_the_actions_of_a_batch(space: Any) -> None:
    found = []
    for name in ("async", "light, 1 worker", "light, 2 workers"):
        env: Any = KINDS[name](walks(2, action=space))
        env.reset(seed=0)
        env.action_space.seed(4)
        try:
            for _ in range(4):
                env.step(env.action_space.sample())
            found.append(env.get_attr("actions"))
        finally:
            env.close()
    assert same(found[0], found[1]) and same(found[0], found[2])


def test_wrong_order_and_use_after_close(make: Maker) -> None:
    env: Any = make(walks(2))
    env.reset()
    if not isinstance(env, SyncVectorEnv):
        with pytest.raises(NoAsyncCallError):
            env.step_wait()
        env.step_async(np.zeros(2, np.int64))
        with pytest.raises(AlreadyPendingCallError):
            env.step_async(np.zeros(2, np.int64))
        with pytest.raises(AlreadyPendingCallError):
            env.call_async("level")
        env.step_wait()
        env.call_async("level")
        assert env.call_wait() == (0, 0)
    with pytest.raises(ValueError, match=r"match num_envs|one seed for each"):
        env.reset(seed=[1])
    for wrong in (np.zeros(2, np.bool_), np.ones(3, np.bool_)):
        with pytest.raises(ValueError, match="reset_mask"):
            env.reset(options={"reset_mask": wrong})
    with pytest.raises(TypeError, match="reset_mask"):
        env.reset(options={"reset_mask": [True, False]})
    env.close()
    env.close()
    assert env.closed
    if not isinstance(env, SyncVectorEnv):
        with pytest.raises(ClosedEnvironmentError):
            env.reset()


def test_different_spaces_of_one_shape_can_be_asked_for(make: Maker) -> None:
    env = make([Walk, lambda: Other("bounds"), Walk], observation_mode="different")
    assert isinstance(env.observation_space, spaces.Box)
    assert env.observation_space.high[:, 0].tolist() == [1, 2, 1]
    env.close()


def test_a_step_that_raises_is_shown() -> None:
    env = LightVectorEnv([Walk, lambda: Bad("raise")], workers=1)
    with pytest.raises(TargetFailed, match="env 1 raised KeyError"):
        played(env, 30, ACTIONS[:, :2])
    with pytest.raises(ClosedEnvironmentError):
        env.reset()


def test_a_finished_env_is_not_stepped_where_autoreset_is_off() -> None:
    env = LightVectorEnv(walks(3), autoreset_mode="Disabled", workers=1)
    with pytest.raises(UsageError, match="reset_mask"):
        played(env, 60, ACTIONS)


def test_gymnasiums_wrappers_take_it() -> None:
    builders = [lambda: gymnasium.make("CartPole-v1")] * 2
    env = gymnasium.wrappers.vector.RecordEpisodeStatistics(LightVectorEnv(builders))
    env.reset(seed=1)
    infos: dict[str, Any] = {}
    while "episode" not in infos:
        infos = env.step(env.action_space.sample())[-1]
    assert infos["episode"]["l"].max() > 5
    env.close()
