"""The site's menu: a section for each folder, and a place for every page.

A new page in docs/ or one of its folders is in the menu by being there, called by its first
heading; to give it a certain place, name it below.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

# Which pages stand where: names without `.md`, folders with all their pages by a `/` at the end.
# What is named nowhere goes to GUIDES.
GUIDES = "Guides"
SECTIONS: dict[str, list[str]] = {
    "Home": ["README"],
    "Tutorials": [
        *(f"docs/tutorials/{name}" for name in ("plan", "check", "sweep", "run", "watch")),
        *(f"docs/tutorials/{name}" for name in ("explain", "profile", "optimize", "compare")),
        *(f"docs/tutorials/{name}" for name in ("export", "demo")),
        "docs/tutorials/",
    ],
    "How to": ["docs/howto/"],
    GUIDES: ["docs/record", "docs/explain", "docs/profile", "docs/loops"],
    "Make it fit": ["docs/dropins/"],
    "Checks": ["docs/checks", "docs/checks/"],
    "Reference": [
        *("docs/reference/cli", "docs/reference/api", "docs/output", "docs/spec"),
        *("docs/formulas", "docs/confinement", "docs/reference/examples", "docs/reference/"),
    ],
    "Systems": ["docs/systems/"],
    "Measured": ["benchmarks/accuracy/README", "benchmarks/"],
    "Project": ["docs/architecture", "docs/libraries", "CONTRIBUTING", "CHANGELOG", "SECURITY"],
}
HEADING = re.compile(r"^# (.+)$", re.MULTILINE)


def menu(source: Path) -> list[dict[str, Any]]:
    """The sections with their pages, as the generator wants them."""
    left = sorted(page.relative_to(source) for page in source.rglob("*.md"))
    placed: dict[str, list[Path]] = {}
    for section, names in SECTIONS.items():
        placed[section] = []
        for name in names:
            found = [page for page in left if _is(name, page)]
            left = [page for page in left if page not in found]
            placed[section] += found
    placed[GUIDES] += left
    return [
        {section: str(pages[0])}
        if len(pages) == 1
        else {section: [{_title(source / page): str(page)} for page in pages]}
        for section, pages in placed.items()
        if pages
    ]


def _is(name: str, page: Path) -> bool:
    return str(page).startswith(name) if name.endswith("/") else str(page.with_suffix("")) == name


def _title(page: Path) -> str:
    heading = HEADING.search(page.read_text(encoding="utf-8"))
    if heading is None:
        raise ValueError(f"{page.name} has no heading `# ...` to be called by in the menu")
    return heading[1].replace("`", "")
