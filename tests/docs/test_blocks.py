"""Every block of README.md and docs/ is one that could run: the options exist, the code parses."""

from __future__ import annotations

import ast
import json
import re
import shlex
import tomllib
from typing import Any

import pytest
import yaml
from typer.main import get_command

from memfit.cli.app import _split, app
from tests.docs.blocks import EXAMPLES, ROOT, Block, blocks, pages, words_of_memfit

GROUP: Any = get_command(app)
LANGUAGES = {"", "bash", "console", "json", "python", "sh", "text", "toml", "yaml"}
COMMANDS = [block for block in blocks() if block.is_commands]
MOST_MARKS = 20


def parsed(words: list[str]) -> None:
    """Have the real commands read these words, without doing anything."""
    own, script = _split(words)
    name, command, rest = GROUP.resolve_command(
        GROUP.make_context("memfit", [], resilient_parsing=True), own
    )
    assert not command.make_context(name, rest, obj=script).args, "what the command does not know"


def test_there_are_blocks() -> None:
    assert len(COMMANDS) > 30


@pytest.mark.parametrize("block", COMMANDS, ids=str)
def test_commands_are_those_that_memfit_has(block: Block) -> None:
    for line in block.lines:
        for words in words_of_memfit(line.command):
            parsed(words)


def test_an_option_that_does_not_exist_is_found() -> None:
    with pytest.raises(AssertionError, match="--no-such"):
        parsed(["plan", "train.py", "--no-such"])


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_options_in_sentences_exist(page: Any) -> None:
    text = re.sub(
        r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    for span in re.findall(r"`memfit ([a-z]+ [^`]*)`", text):
        name, *words = span.split(" -- ")[0].split()
        known = {option for p in GROUP.commands[name].params for option in p.opts}
        assert {word for word in words if word.startswith("--") and len(word) > 2} <= known, span


@pytest.mark.parametrize("block", blocks(), ids=str)
def test_a_block_is_of_a_known_language_and_parses(block: Block) -> None:
    assert block.language in LANGUAGES
    if block.language == "python":
        ast.parse(f"{block.given}\n{block.text}")
    elif block.language == "toml":
        tomllib.loads(block.text)
    elif block.language == "json":
        json.loads(block.text)
    elif block.language == "yaml":
        list(yaml.safe_load_all(block.text))


def test_verbs_of_make_are_in_the_makefile() -> None:
    verbs = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    asked = [shlex.split(line.command, comments=True) for b in COMMANDS for line in b.lines]
    assert {words[1] for words in asked if words[:1] == ["make"]} <= verbs


def test_extras_to_install_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    installed = [
        line.command for block in COMMANDS for line in block.lines if "pip " in line.command
    ]
    named = re.findall(r"[\w.]+\[([\w,]+)\]", "\n".join(installed))
    assert named
    assert {extra for names in named for extra in names.split(",")} <= set(
        project["optional-dependencies"]
    )


def test_blocks_that_are_not_run_are_few_and_say_why() -> None:
    marked = {str(block): block.not_run for block in blocks() if block.not_run}
    listed = "\n".join(f"{place}: {why}" for place, why in marked.items())
    assert len(marked) <= MOST_MARKS, listed
    assert all(len(why.split()) >= 3 for why in marked.values()), listed


def test_every_command_is_shown_where_it_is_run() -> None:
    run = [line.command for block in COMMANDS if not block.not_run for line in block.lines]
    shown = {words[0] for command in run for words in words_of_memfit(command)}
    assert set(GROUP.commands) - shown == {"demo"}, "it takes minutes: tests/api"


@pytest.mark.parametrize("file", sorted(EXAMPLES.iterdir()), ids=lambda file: str(file.name))
def test_every_example_is_used_and_says_what_it_is(file: Any) -> None:
    if file.name == "__pycache__":
        return
    shown = "\n".join(f"{block.given}\n{block.text}" for block in blocks() if not block.not_run)
    assert re.search(rf"\b{file.stem}\b", shown)
    if file.suffix == ".py":
        assert ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
