"""The platformer as a Gymnasium environment."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, SupportsInt, cast

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from memfit.model.json_loader import from_json
from memfit.systems.ninja.drawing import animation, draw_background, picture, shared_background
from memfit.systems.ninja.fields import build_fields, reachability
from memfit.systems.ninja.full_frame import FullFrame
from memfit.systems.ninja.graph import GRAPH, DescribedGraph
from memfit.systems.ninja.level import load, shared_level
from memfit.systems.ninja.level_data import build_data, shared_data, shared_graph
from memfit.systems.ninja.patches import Patches
from memfit.systems.ninja.settings import EnvironmentConfig
from memfit.systems.ninja.sizes import (
    ACTIONS,
    ALL_ENTITIES,
    FRAME,
    GAME_STATE,
    NEAREST_ENTITIES,
    NODES,
    REACHABILITY,
    VIEW,
    Array,
    Observation,
)
from memfit.systems.ninja.world import World, game_state, mine_features


def observation_space(config: EnvironmentConfig) -> spaces.Dict:
    """The space of an environment's observations.

    A space is not small: for every element it keeps a lower and an upper bound of that type, and
    two flags. For pixels that is four times, for float32 two and a half times the observation.
    """
    entities = ALL_ENTITIES if config.entities == "all" else NEAREST_ENTITIES
    state = np.float32 if config.memory.float32_state else np.float64
    parts: dict[str, spaces.Space[Any]] = {
        "player_frame": spaces.Box(0, 255, (FRAME, FRAME, 1), np.uint8),
        "global_view": spaces.Box(0, 255, (*VIEW, 1), np.uint8),
        "game_state": spaces.Box(-1, 1, (GAME_STATE,), state),
        "entity_states": spaces.Box(-3, 3, (entities,), np.float32),
    }
    if config.reachability:
        parts["reachability"] = spaces.Box(0, 2, (REACHABILITY,), np.float32)
    if config.graphs == "number":
        parts["level"] = spaces.Box(0, max(len(config.levels) - 1, 1), (1,), np.int32)
    elif config.graphs == "arrays":
        for name, (shape, kind) in GRAPH.items():
            low = -1 if kind is np.float32 else 0
            high = 2 if kind is np.float32 else NODES
            parts[name] = spaces.Box(low, high, shape, kind)
    return spaces.Dict(parts)


# One space for all environments of a configuration.
shared_space = cache(observation_space)


class _Stage:
    """A level with all that one environment has of it, its own or shared."""

    def __init__(self, name: str, config: EnvironmentConfig) -> None:
        memory = config.memory
        self.level = shared_level(name) if memory.shared_levels else load(name)
        self.pictures: FullFrame | Patches
        if memory.shared_levels or memory.patches:
            data = (shared_data if memory.shared_levels else build_data)(self.level)
            fields = data.fields
        else:
            fields = build_fields(self.level)
        if memory.patches:
            self.pictures = Patches(data.background, data.overview)
        else:
            draw = shared_background if memory.shared_levels else draw_background
            self.pictures = FullFrame(draw(self.level), memory)
        self.world = World(self.level, fields, sparse=memory.sparse_entities)
        self.shares_graph = memory.shared_graphs
        self._graph: Observation | None = None
        self._described: DescribedGraph | None = None
        if not memory.lazy_graphs:
            self.graph()

    def graph(self) -> Observation:
        """The level's graph, built when it is first asked for."""
        if self._graph is None:
            if self.shares_graph:
                self._graph = shared_graph(self.level)
            else:
                self._described = DescribedGraph(self.level)
                self._graph = self._described.arrays
        return self._graph


class NinjaEnv(gym.Env[Observation, np.int64]):
    """Reach the switch, then the exit, and touch no armed mine."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 15}  # noqa: RUF012 - Gymnasium's form

    def __init__(
        self, config: EnvironmentConfig | None = None, *, render_mode: str | None = None
    ) -> None:
        self.config = config = config or EnvironmentConfig.for_training()
        self.render_mode = render_mode
        memory = config.memory
        make = shared_space if memory.shared_spaces else observation_space
        space = make(config)
        self.observation_space = cast(spaces.Space[Observation], space)
        self._parts = dict(space.spaces)
        self.action_space = spaces.Discrete(len(ACTIONS))
        self._poses = None if memory.no_animation else animation()
        self._stages: dict[int, _Stage] = {}
        self._number = 0
        self._stage = self._enter(0)
        self._arrays: Observation | None = None
        self._last: Observation | None = None

    def _enter(self, number: int) -> _Stage:
        """A level, made ready when it is first played."""
        if number not in self._stages:
            self._stages[number] = _Stage(self.config.levels[number], self.config)
        return self._stages[number]

    @property
    def world(self) -> World:
        """The game as it is now."""
        return self._stage.world

    def graph(self) -> Observation:
        """The seven arrays of the present level's graph."""
        return self._stage.graph()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin a game, on a level drawn from those of the configuration."""
        super().reset(seed=seed)
        if len(self.config.levels) > 1:
            self._number = int(self.np_random.integers(len(self.config.levels)))
            self._stage = self._enter(self._number)
        self.world.reset()
        self._stage.pictures.begin(self.world)
        # New arrays, even where they are reused: the last ones of a game stay its own.
        self._arrays = None
        return self._observe(), {"level": self._stage.level.name}

    def step(self, action: SupportsInt) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Move by one step."""
        reward = self.world.step(int(action))
        ended = self.world.over
        timeout = not ended and self.world.steps >= self.config.max_steps
        info = {"is_success": self.world.won} if ended or timeout else {}
        return self._observe(), reward, ended, timeout, info

    def render(self) -> Array | None:
        """The whole picture in colour, drawn when it is asked for."""
        if self.render_mode != "rgb_array":
            return None
        return picture(self._stage.level, self.world, self._poses)

    def _observe(self) -> Observation:
        memory, world = self.config.memory, self.world
        out = self._arrays if memory.reuse else None
        if out is None:
            out = self._empty()
            if memory.reuse:
                self._arrays = out
        self._stage.pictures.observe(world, out["player_frame"], out["global_view"])
        game_state(world, self.config.max_steps, out["game_state"])
        self._write_entities(out)
        if self.config.reachability:
            ninja = world.ninja
            reachability(
                world.fields, ninja.x, ninja.y, switched=world.switched, out=out["reachability"]
            )
        if self.config.graphs == "number":
            out["level"][0] = self._number
        elif self.config.graphs == "arrays":
            graph = self.graph()
            out.update(graph if memory.shared_graphs else _copied(graph))
        if not memory.views:
            self._last = _copied(out)
        return out

    def _write_entities(self, out: Observation) -> None:
        if self.config.memory.sparse_entities:
            mine_features(self.world, out["entity_states"])
            return
        every = np.zeros(ALL_ENTITIES, np.float32)
        mine_features(self.world, every)
        # A slice keeps all of what it is cut from.
        out["entity_states"] = every[: len(out["entity_states"])]

    def _empty(self) -> Observation:
        """Arrays for one observation; a graph's are not among them."""
        return {
            name: np.empty(space.shape or (), space.dtype)
            for name, space in self._parts.items()
            if name not in GRAPH
        }


def configured(config: Mapping[str, Any]) -> NinjaEnv:
    """An environment from its configuration as JSON has it, for `memfit profile --option`."""
    return NinjaEnv(from_json(EnvironmentConfig, dict(config)))


def _copied(observation: Observation) -> Observation:
    return {name: array.copy() for name, array in observation.items()}
