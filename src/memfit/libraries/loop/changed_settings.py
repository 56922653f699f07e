"""Changes a program as it is read: settings on its command line and in its files, and `seldom`."""

from __future__ import annotations

import importlib.machinery
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from memfit.libraries.loop.main_code import main_code
from memfit.libraries.loop.own_files import OwnFiles


def with_argument_values(args: Iterable[str], knobs: Mapping[str, int]) -> list[str]:
    """A program's arguments, with the values of options that it was given changed.

    Options may be written `--num-envs 8`, `--num_envs=8`, `--algo.num-envs 8` or `num_envs=8`.
    """
    words = list(args)
    for at, word in enumerate(words):
        option, equals, _ = word.partition("=")
        name = option.lstrip("-+").replace("-", "_").rpartition(".")[2]
        if name not in knobs:
            continue
        if equals:
            words[at] = f"{option}={knobs[name]}"
        elif option.startswith("-") and at + 1 < len(words):
            words[at + 1] = str(knobs[name])
    return words


def change_own_files(own: OwnFiles, knobs: Mapping[str, int]) -> None:
    """Let the program's own modules have other values, and ask first, when they are imported."""
    loader: Any = importlib.machinery.SourceFileLoader
    code_of = loader.get_code

    def get_code(self: Any, name: str) -> Any:
        path = str(self.get_filename(name))
        if not own.has(path):
            return code_of(self, name)
        return main_code(Path(path).read_bytes(), path, knobs)

    loader.get_code = get_code
