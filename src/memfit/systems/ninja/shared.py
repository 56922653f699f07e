"""What a level's arrays are, and how environments and processes share them.

Shared arrays are read-only. Environments of one process find them in a table, and forks of that
process in the pages that they inherit. Processes that are started anew map them from files in a
folder, which the first one writes; the kernel keeps one copy of their pages for all.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from memfit.errors import UsageError
from memfit.systems.ninja.drawing import draw_background, grey_of, shrink
from memfit.systems.ninja.fields import Fields, build_fields
from memfit.systems.ninja.graph import GRAPH, build_graph
from memfit.systems.ninja.headless import pygame
from memfit.systems.ninja.level import Level, load
from memfit.systems.ninja.sizes import Array, Observation

_PICTURE = ("background", "overview", "to_switch", "to_exit")
_Key = tuple[str, str | None]
_levels: dict[str, Level] = {}
_data: dict[_Key, LevelData] = {}
_graphs: dict[_Key, Observation] = {}
_surfaces: dict[str, pygame.Surface] = {}


@dataclass(frozen=True, kw_only=True)
class LevelData:
    """The arrays of a level: its background in grey, whole and shrunk, and its fields."""

    background: Array
    overview: Array
    fields: Fields


def shared_level(name: str) -> Level:
    """A level, read once."""
    if name not in _levels:
        _levels[name] = load(name)
    return _levels[name]


def build_data(level: Level) -> dict[str, Array]:
    """A level's arrays, made anew."""
    surface = draw_background(level)
    background = grey_of(pygame.surfarray.pixels3d(surface))
    fields = build_fields(level)
    return {
        "background": background,
        "overview": shrink(background),
        "to_switch": fields.to_switch,
        "to_exit": fields.to_exit,
    }


def shared_data(level: Level, folder: str | None = None) -> LevelData:
    """A level's arrays, the same for all that ask."""
    key = (level.digest, folder)
    if key not in _data:
        arrays = _mapped(level, folder, _PICTURE) if folder else None
        if arrays is None:
            arrays = _published(level, folder, build_data(level))
        _data[key] = LevelData(
            background=arrays["background"],
            overview=arrays["overview"],
            fields=Fields(to_switch=arrays["to_switch"], to_exit=arrays["to_exit"]),
        )
    return _data[key]


def shared_graph(level: Level, folder: str | None = None) -> Observation:
    """A level's graph, built when it is first asked for, the same for all that ask."""
    key = (level.digest, folder)
    if key not in _graphs:
        arrays = _mapped(level, folder, tuple(GRAPH)) if folder else None
        if arrays is None:
            arrays = _published(level, folder, build_graph(level))
        _graphs[key] = arrays
    return _graphs[key]


def shared_surface(level: Level) -> pygame.Surface:
    """A level's background in colour, the same for all environments of a process."""
    if level.digest not in _surfaces:
        _surfaces[level.digest] = draw_background(level)
    return _surfaces[level.digest]


def forget() -> None:
    """Drop everything that is shared; environments keep what they use."""
    for table in (_levels, _data, _graphs, _surfaces):
        table.clear()


def _published(level: Level, folder: str | None, arrays: dict[str, Array]) -> dict[str, Array]:
    """Arrays that nobody writes; with a folder, those in its files."""
    if folder:
        for name, array in arrays.items():
            _write(Path(folder), f"{level.digest}-{name}.npy", array)
        mapped = _mapped(level, folder, tuple(arrays))
        if mapped is not None:
            return mapped
    for array in arrays.values():
        array.flags.writeable = False
    return arrays


def _mapped(level: Level, folder: str | None, names: tuple[str, ...]) -> dict[str, Array] | None:
    """The arrays of a folder's files, or None where they are not all there."""
    if folder is None:
        return None
    files = {name: Path(folder) / f"{level.digest}-{name}.npy" for name in names}
    try:
        return {name: np.load(file, mmap_mode="r") for name, file in files.items()}
    except FileNotFoundError:
        return None


def _write(folder: Path, name: str, array: Array) -> None:
    """Write a file so that others see all of it or nothing."""
    try:
        handle, draft = tempfile.mkstemp(dir=folder, suffix=".part")
    except OSError as error:
        raise UsageError(
            f"shared arrays cannot be written to {folder} ({error.strerror}): "
            "give a folder that exists and may be written to"
        ) from None
    with os.fdopen(handle, "wb") as file:
        np.save(file, array)
    Path(draft).replace(folder / name)
