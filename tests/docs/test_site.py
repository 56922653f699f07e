"""The site builds without a warning, with every page in its menu, and asks nobody for anything."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from docs.builder.api_reference import api_page
from docs.builder.cli_reference import cli_page
from docs.builder.menu import menu
from docs.builder.site import build, lay_out, pages
from typer.main import get_command

import memfit
from memfit.cli.app import app

pytest.importorskip("zensical", reason="the site needs the extra `docs`")
pytest.importorskip("stable_baselines3", reason="the reference shows parts for it")
# What a browser fetches by itself.
FETCHED = re.compile(
    r"""(?:<script[^>]*\ssrc|<img[^>]*\ssrc|<link[^>]*\shref)=["']?(https?:[^"'\s>]+)"""
)


def test_the_site_builds_without_warnings(tmp_path: Path) -> None:
    assert build(tmp_path / "site") == 0
    built = sorted((tmp_path / "site").rglob("*.html"))
    assert len(built) > len(pages())
    for file in built:
        asked = set(FETCHED.findall(file.read_text(encoding="utf-8")))
        assert not asked, f"{file.name} asks {asked}"


def test_every_page_has_its_place_in_the_menu(tmp_path: Path) -> None:
    lay_out(tmp_path)
    (tmp_path / "docs" / "newcomer.md").write_text("# A new page\n", encoding="utf-8")
    told = str(menu(tmp_path))
    for page in tmp_path.rglob("*.md"):
        assert f"'{page.relative_to(tmp_path)}'" in told
    assert "{'A new page': 'docs/newcomer.md'}" in told


def test_a_broken_link_fails_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = {"docs/reference/cli.md": lambda: "# Commands\n\n[nowhere](nowhere.md)\n"}
    monkeypatch.setattr("docs.builder.site.MADE", broken)
    assert build(tmp_path / "site") != 0
    assert not list((tmp_path / "site").rglob("*.html"))


def test_the_reference_has_every_command_option_and_name() -> None:
    cli, api = cli_page(), api_page()
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        section = cli.split(f"\n## memfit {name}\n")[1].split("\n## ")[0]
        for parameter in command.params:
            assert all(option in section for option in parameter.opts if option.startswith("-"))
    for name in memfit.__all__:
        assert f"\n### {name}\n" in api
