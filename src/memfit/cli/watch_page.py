"""`memfit watch --serve`: the live view as a web page."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from memfit.errors import MissingExtra, visible

if TYPE_CHECKING:
    from memfit.model import Targets


def served(
    words: Sequence[str],
    hosts: tuple[str, ...],
    seconds: float,
    limit: int | None,
    aims: Targets,
) -> None:
    """Serve the runs among these words, at the address among them, until Ctrl-C."""
    from memfit import render
    from memfit.api import watch as api
    from memfit.serve.address import address, is_address

    try:
        from memfit.serve.app import Pictures
        from memfit.serve.server import serve
    except ImportError:
        raise MissingExtra(
            "a page needs a web server: pip install 'memfit[serve]', or watch without --serve"
        ) from None
    places = [word for word in words if is_address(word) and not Path(word).exists()]
    at = address(places[-1] if places else None, hosts)
    targets = [word for word in words if word not in places]
    views = api.watch_each(targets, limit=limit, aims=aims)
    pictures = Pictures(
        page=render.live_page,
        run=render.run_parts,
        metrics=render.live_metrics,
        script=render.drawing_script,
    )
    if hosts:
        sys.stderr.write(
            "memfit: whoever is on the way to those who look can read along: it is not encrypted\n"
        )
    runs = {name: view.frame for name, view in views.items()}
    frames = serve(runs, at, pictures, seconds=seconds, tell=_tell)
    for name, frame in frames.items():
        if len(frames) > 1:
            sys.stdout.write(f"\n{visible(name)}\n")
        render.to_terminal(render.frame_summary(frame), sys.stdout)


def _tell(url: str, first: bool) -> None:
    if first:
        told = f"watch it at {url}\nmemfit: it works once, in one browser; Ctrl-C ends"
    else:
        told = f"it was opened; for another browser: {url}"
    with suppress(OSError):  # nobody reads what is printed: those who watch go on
        sys.stdout.write(f"memfit: {told}\n")
        sys.stdout.flush()
