"""The arrays of a level that never change: its pictures, its distances and its graph.

The shared ones are in memory once for all environments of all processes, however these were
started, and nobody can write to them.
"""

from __future__ import annotations

from dataclasses import dataclass

from memfit.dropins import shared
from memfit.systems.headless import pygame
from memfit.systems.ninja.drawing import draw_background, grey_of, shrink
from memfit.systems.ninja.fields import Fields, build_fields
from memfit.systems.ninja.graph import build_graph
from memfit.systems.ninja.level import Level, parse
from memfit.systems.ninja.sizes import Array, Observation


@dataclass(frozen=True, kw_only=True)
class LevelData:
    """A level's background in grey, whole and shrunk, and its distances."""

    background: Array
    overview: Array
    fields: Fields


def build_data(level: Level) -> LevelData:
    """A level's pictures and distances, made anew."""
    background = grey_of(pygame.surfarray.pixels3d(draw_background(level)))
    return LevelData(background=background, overview=shrink(background), fields=build_fields(level))


def shared_data(level: Level) -> LevelData:
    """A level's pictures and distances, the same for all that ask."""
    drawing = level.drawing
    found: LevelData = shared(lambda: build_data(parse(drawing, name="shared")))
    return found


def shared_graph(level: Level) -> Observation:
    """A level's graph, built when it is first asked for, the same for all that ask."""
    drawing = level.drawing
    found: Observation = shared(lambda: build_graph(parse(drawing, name="shared")))
    return found
