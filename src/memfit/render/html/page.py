"""From a result's blocks and JSON to one page that needs nothing else, not even a network."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from importlib.util import find_spec
from typing import Any

from memfit.errors import MissingExtra
from memfit.render.blocks import Block
from memfit.render.html.embedded import (
    BLOCKS,
    PICTURES,
    RESULT,
    blocks_json,
    data_element,
    kept_data,
)
from memfit.render.html.facts import facts, page_title
from memfit.render.html.figure import Data, Picture
from memfit.render.html.markup import block_elements, split_verdict, table_element, without_drawn
from memfit.render.html.pictures import pictures

MISSING = 'pictures need plotly: pip install "memfit[report]"'
_NO_SCRIPT = "The pictures need JavaScript; the numbers behind each are here without it."
_NO_PICTURES = 'Pictures are missing: pip install "memfit[report]"'
_FRAME_HEIGHT = 760


def check_pictures() -> None:
    """Refuse to write a page without what draws its pictures, before the work and not after it."""
    if find_spec("plotly") is None:
        raise MissingExtra(f"--format html: {MISSING}")


def to_html(blocks: Iterable[Block], data: Data, *, drawn: bool = True) -> str:
    """The page of a result; where it is not `drawn`, only its numbers."""
    if drawn:
        check_pictures()
    blocks = list(blocks)
    kept = kept_data(dict(data))
    shown = list(pictures(kept)) if drawn else []
    verdict, rest = split_verdict(blocks)
    command, title = page_title(kept)
    scripts = [_plotly(), _file("page.js")] if shown else [_file("page.js")]
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(scripts)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{html.escape(f'{command}: {title}' if title else command)}</title>",
        f"<style>\n{_file('page.css')}</style></head>",
        '<body><header><div class="bar">',
        f'<p class="command">{html.escape(command)}</p>',
        '<button type="button" id="theme" hidden>Dark</button></div>',
        f"<h1>{html.escape(title or command)}</h1></header><main>",
        verdict,
        facts(kept),
        f'<noscript><p class="muted">{_NO_SCRIPT}</p></noscript>' if shown else "",
        "" if drawn else f'<p class="muted">{_NO_PICTURES}</p>',
        *map(_section, shown),
        '<h2 class="divider">In detail</h2>' if shown and rest else "",
        *block_elements(without_drawn(rest, {picture.key for picture in shown})),
        "</main>",
        _footer(command),
        data_element(RESULT, kept),
        data_element(BLOCKS, blocks_json(blocks)),
        *_drawing(shown),
        f"<script>{scripts[-1]}</script>",
        "</body></html>\n",
    ]
    return "\n".join(part for part in parts if part)


def check_data(data: Data) -> None:
    """Fail where the data of a page, that anybody may have written, cannot be shown."""
    kept = kept_data(dict(data))
    data_element(PICTURES, [_picture_json(picture) for picture in pictures(kept)])
    page_title(kept)
    facts(kept)


def notebook_frame(page: str) -> str:
    """A page as a part of a notebook: in a frame of its own, that reaches nothing around it."""
    return (
        f'<iframe sandbox="allow-scripts" style="width:100%;height:{_FRAME_HEIGHT}px;border:0" '
        f'title="memfit" srcdoc="{html.escape(page)}"></iframe>'
    )


def _section(picture: Picture) -> str:
    """A picture with its title, what it shows, and its numbers."""
    key, words = html.escape(picture.key), html.escape(f"{picture.title}. {picture.note}")
    shape = f'data-picture="{key}" style="height:{picture.height}px"'
    return "\n".join(
        [
            f'<section class="picture" id="{key}"><h2>{html.escape(picture.title)}</h2>',
            f'<p class="note">{html.escape(picture.note)}</p>',
            f'<div class="choice" data-for="{key}"></div>',
            f'<div class="plot" role="img" aria-label="{words}" {shape}></div>',
            "<details><summary>The numbers</summary>",
            *map(table_element, (picture.table, *picture.more_tables)),
            "</details></section>",
        ]
    )


def _drawing(shown: Sequence[Picture]) -> list[str]:
    if not shown:
        return []
    data = {picture.key: _picture_json(picture) for picture in shown}
    packed = base64.b64encode(drawing_script() or b"").decode()
    return [
        data_element(PICTURES, data),
        f'<script type="application/gzip+base64" id="memfit-plotly">{packed}</script>',
    ]


def _picture_json(picture: Picture) -> dict[str, Any]:
    return {
        "traces": list(picture.traces),
        "layout": dict(picture.layout),
        "views": [
            {"key": view.key, "label": view.label, "at": view.at, "trace": view.trace}
            for view in picture.views
        ],
        "shown": picture.shown,
        "leads": picture.leads,
        "height": picture.height,
        "layers": {name: list(numbers) for name, numbers in picture.layers.items()},
    }


def _policy(scripts: Sequence[str]) -> str:
    """Nothing is loaded from anywhere, and only these scripts run."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for text in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


@cache
def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


@cache
def drawing_script() -> bytes | None:
    """Plotly's own script at a third of its size, which browsers unpack; None without plotly."""
    if find_spec("plotly") is None:
        return None
    return gzip.compress(_plotly().encode(), mtime=0)


@cache
def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _footer(command: str) -> str:
    return (
        '<footer><p class="muted">This file holds its own data. '
        "<code>memfit explain THIS.html</code> shows it again, in any format; "
        "<code>memfit compare A.html B.html</code> shows what changed between two."
        "</p></footer>"
    )
