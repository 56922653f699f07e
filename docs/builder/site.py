"""Lays the site's pages out as they stand in the repository, and lets Zensical build them.

Links between pages then mean the same in an editor, on a code host and on the site.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml
from docs.builder.api_reference import api_page
from docs.builder.cli_reference import cli_page
from docs.builder.menu import menu
from docs.builder.script_pages import examples_page

ROOT = Path(__file__).parents[2]
# Pages that are made anew each time, by their place on the site.
MADE = {
    "docs/reference/cli.md": cli_page,
    "docs/reference/api.md": api_page,
    "docs/reference/examples.md": examples_page,
}
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")


def pages() -> list[Path]:
    """Every page that a person wrote, and the tables of the benchmarks."""
    return [
        *(ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY")),
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "benchmarks").glob("*/README.md")),
    ]


def lay_out(source: Path) -> None:
    """Put all pages, and what they link to, below a folder, as they stand in the repository."""
    texts = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in pages()}
    texts |= {name: make() for name, make in MADE.items()}
    for name, text in texts.items():
        _place(source / name).write_text(text, encoding="utf-8")
        for linked in _files_linked(name, text):
            if str(linked.relative_to(ROOT)) not in texts:
                shutil.copy(linked, _place(source / linked.relative_to(ROOT)))
    shutil.copy(Path(__file__).with_name("site.css"), source)


def _files_linked(name: str, text: str) -> Iterator[Path]:
    for target in LINK.findall(text):
        linked = (ROOT / name).parent.joinpath(target).resolve()
        if linked.is_file() and linked.is_relative_to(ROOT):
            yield linked


def _place(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def build(into: Path) -> int:
    """Build the site into a folder; 0 where nothing was wrong, else the generator's exit code."""
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="memfit-site-") as folder:
        source = Path(folder, "pages")
        lay_out(source)
        settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
        settings |= {"docs_dir": "pages", "site_dir": "site", "nav": menu(source)}
        config = Path(folder, "mkdocs.yml")
        config.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "zensical",
            "build",
            "--strict",
            "--clean",
            "-f",
            str(config),
        ]
        done = subprocess.run(command, cwd=folder, check=False, timeout=120)
        if not done.returncode:
            shutil.copytree(Path(folder, "site"), into, dirs_exist_ok=True)
    return done.returncode
