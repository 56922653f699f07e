"""What of a page is held in golden files: all but scripts, style and what other files hold."""

from __future__ import annotations

import json
import re

from memfit.render.html.embedded import PICTURES

_HASH = re.compile(r"'sha256-[^']+'")
_STYLE = re.compile(r"(<style>).*?(</style>)", re.DOTALL)
_CODE = re.compile(r"(<script>).*?(</script>)", re.DOTALL)
_DATA = re.compile(r'(<script type="[^"]+" id="([^"]+)">)(.*?)(</script>)', re.DOTALL)


def element(page: str, name: str) -> str:
    """The text of one of the page's data elements."""
    return next(found[3] for found in _DATA.finditer(page) if found[2] == name)


def structure(page: str) -> str:
    """A page without its scripts, with a line for each trace of its pictures."""
    page = _HASH.sub("'sha256-…'", page)
    page = _CODE.sub(r"\1…\2", _STYLE.sub(r"\1…\2", page))
    return _DATA.sub(lambda found: found[1] + _kept(found[2], found[3]) + found[4], page)


def _kept(name: str, text: str) -> str:
    if name != PICTURES:
        return "…"
    lines = []
    for key, picture in json.loads(text).items():
        lines.append(f"{key}: {json.dumps(picture['layout'])}")
        lines += [f"  {json.dumps(trace)}" for trace in picture["traces"]]
        lines += [f"  {view['label']}: {json.dumps(view['trace'])}" for view in picture["views"]]
    return "\n" + "\n".join(lines) + "\n"
