"""Results that a notebook shows as a page: who draws it is told by those who wire the rooms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar


class ShownInNotebooks:
    """A result that is its report where it is the last line of a notebook's cell."""

    draw: ClassVar[Callable[[Any], str | None] | None] = None

    def _repr_html_(self) -> str | None:
        """The report, or None, so that a notebook shows the result as text."""
        draw = ShownInNotebooks.draw
        return None if draw is None else draw(self)
