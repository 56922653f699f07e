"""pygame, without its greeting on standard output. No window, sound or clock is ever started."""

from __future__ import annotations

import os

_PROMPT = "PYGAME_HIDE_SUPPORT_PROMPT"
_given = os.environ.get(_PROMPT)
os.environ[_PROMPT] = "1"
import pygame  # noqa: E402
import pygame.surfarray  # noqa: E402

if _given is None:
    del os.environ[_PROMPT]

__all__ = ["pygame"]
