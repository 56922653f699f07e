"""The page on run specs names every key with its default, and its examples are read."""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from pathlib import Path

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from memfit.sources import spec

PAGE = (Path(__file__).parents[1] / "docs" / "spec.md").read_text(encoding="utf-8")
EXAMPLES = [
    text
    for text in re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    if "schema" in tomllib.loads(text)
]
# The heading under which the keys of each table stand.
HEADINGS = {
    spec.Sb3File: "Top level",
    spec.Sb3Knobs: "`[knobs]`",
    spec.PolicyOptions: "`[policy_kwargs]`",
    spec.Space: "`[observation]` and `[action]`",
    spec.Env: "`[env]`",
    spec.Callback: "`[[callback]]`",
    spec.TorchFile: "Top level of a torch spec",
    spec.NetworkTable: "`[[network]]`",
    spec.LayerFacts: "`layers`",
    spec.ArrayTable: "`[[array]]`",
    spec.Update: "`[update]`",
}
TABLES = [
    table
    for _, table in inspect.getmembers(spec, inspect.isclass)
    if issubclass(table, BaseModel) and table.__module__ == spec.__name__ and table.model_fields
    if not table.__subclasses__()  # the keys of a base class stand with each of its own
]


def rows(heading: str) -> dict[str, str]:
    """The keys of the table under a heading, each with what stands as its default."""
    section = PAGE.split(f"\n### {heading}\n")[1].split("\n#")[0]
    found = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \| [^|]+ \|$", section, re.MULTILINE)
    return dict(found)


def default(field: FieldInfo) -> str:
    """A default as the page writes it."""
    if field.is_required():
        return "required"
    if field.default is None:
        return "none"
    if isinstance(field.default, BaseModel):
        return "empty"
    return f"`{json.dumps(field.default)}`"


@pytest.mark.parametrize("table", TABLES, ids=lambda table: str(table.__name__))
def test_every_key_stands_on_the_page_with_its_default(table: type[BaseModel]) -> None:
    assert table in HEADINGS, "give it a section in docs/spec.md, and name that here"
    assert rows(HEADINGS[table]) == {
        field.alias or name: default(field) for name, field in table.model_fields.items()
    }


def test_every_algorithm_stands_on_the_page() -> None:
    assert set(spec.ALGORITHMS) <= set(re.findall(r"\w+", PAGE))


def test_there_are_examples_for_both_libraries() -> None:
    libraries = {tomllib.loads(text)["library"] for text in EXAMPLES}
    assert libraries == {"stable-baselines3", "torch"}


@pytest.mark.torch  # a spec of networks is checked by building them
@pytest.mark.parametrize("text", EXAMPLES, ids=lambda text: str(tomllib.loads(text)["name"]))
def test_an_example_is_read(text: str, tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text(text, encoding="utf-8")
    assert spec.load(path)["name"] == tomllib.loads(text)["name"]


def test_links_within_the_page_lead_somewhere() -> None:
    headings = re.findall(r"^#+ (.+)$", PAGE, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#([^)]+)\)", PAGE)) <= anchors
