"""Which version of a library a script is pinned to: in its own header, or beside it."""

from __future__ import annotations

import re
from pathlib import Path

from memfit.syntax import Source

_ABOVE = 3  # folders in which requirements are looked for
_FILES = ("requirements.txt", "pyproject.toml", "environment.yml", "setup.py")
_HEADER = re.compile(r"^# /// script\n(.*?)^# ///", re.MULTILINE | re.DOTALL)
_MOST = 1 << 20


def pinned_below(source: Source, package: str, version: tuple[int, ...]) -> str:
    """The pin that keeps a package below a version, as it is written; empty if there is none."""
    header = _HEADER.search(source.text)
    for text in ([header.group(1)] if header else []) + list(_beside(Path(source.path))):
        for match in _pins(text, package):
            how, digits = match.group(1), tuple(int(d) for d in match.group(2).split("."))
            if digits < version or (how == "<" and digits <= version):
                return f"{package}{how}{match.group(2)}"
    return ""


def _pins(text: str, package: str) -> list[re.Match[str]]:
    name = package.replace("-", "[-_]")
    pattern = rf"(?<![\w-]){name}(?:\[[^\]]*\])?[\"']?\s*(==|<=|<|~=)\s*[\"']?(\d+(?:\.\d+)*)"
    return list(re.finditer(pattern, text, re.IGNORECASE))


def _beside(path: Path) -> list[str]:
    if not path.is_file():
        return []
    found = []
    for folder in list(path.absolute().parents)[:_ABOVE]:
        for name in _FILES:
            file = folder / name
            if file.is_file() and file.stat().st_size < _MOST:
                found.append(file.read_text(encoding="utf-8", errors="replace"))
        if (folder / ".git").exists():
            break
    return found
