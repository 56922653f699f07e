"""Settings of a reference system: fields of a dataclass that are its command line too.

    agents: int = option(1024, "drones, all in one process", least=1)

is a setting with its default, an option `--agents`, and a clear refusal of 0.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import Field, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

from memfit.errors import UsageError

if TYPE_CHECKING:
    import argparse

Settings = TypeVar("Settings")
_BOUNDS = {
    "least": (operator.ge, "{} or more"),
    "above": (operator.gt, "above {}"),
    "below": (operator.lt, "below {}"),
}


def option(
    default: Any, text: str = "", *, flag: str = "", known: Sequence[str] = (), **rules: Any
) -> Any:
    """A setting with its help and what it may be; the rest of the rules goes to argparse."""
    bounds = {name: rules.pop(name) for name in _BOUNDS if name in rules}
    if known:
        rules["metavar"] = "|".join(known)
    if default is False:
        rules["action"] = "store_true"
    elif default is not None:
        rules["type"] = type(default)
        text += " (%(default)s)" if text else ""
    about = {"flag": flag, "known": known, "bounds": bounds, "argument": {**rules, "help": text}}
    return field(default=default, metadata=about)


def check(settings: Any) -> None:
    """Refuse the first setting that is not what its option allows."""
    for one in _options(type(settings)):
        value, known = getattr(settings, one.name), one.metadata["known"]
        if value is None:
            continue
        if known and value not in known:
            raise UsageError(f"{_flag(one)} {value} is not known: give {', '.join(known)}")
        bounds = [(*_BOUNDS[name], bound) for name, bound in one.metadata["bounds"].items()]
        if not all(holds(value, bound) for holds, _, bound in bounds):
            wanted = " and ".join(text.format(bound) for _, text, bound in bounds)
            raise UsageError(f"{_flag(one)} is {value}: give {wanted}")


def parser_of(
    system: str, description: str, examples: str, described: Mapping[str, Any], *kinds: Any
) -> argparse.ArgumentParser:
    """The command line of a system: its settings that have a help, and what every system has."""
    import argparse  # not where a worker only reads its settings

    parser = argparse.ArgumentParser(
        prog=f"python -m memfit.systems.{system}",
        description=description,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for kind in kinds:
        for one in _options(kind):
            argument = dict(one.metadata["argument"])
            if one.name in described:
                argument["help"] += f"; as described {described[one.name]}"
            if argument["help"]:
                parser.add_argument(_flag(one), dest=one.name, default=one.default, **argument)
    add = parser.add_argument
    add("--device", default="auto", help="cpu, cuda, or auto: a device where there is one")
    add("--as-described", action="store_true", help="with all the waste of the assessment")
    add("--quiet", action="store_true", help="no progress on standard error")
    return parser


def parse(
    parser: argparse.ArgumentParser, argv: Sequence[str] | None, described: Mapping[str, Any]
) -> argparse.Namespace:
    """Read a command line; what is as described has other defaults."""
    options = parser.parse_args(argv)
    if options.as_described:
        parser.set_defaults(**described)
        options = parser.parse_args(argv)
    return options


def settings_from(kind: type[Settings], options: argparse.Namespace, **given: Any) -> Settings:
    """The settings that a command line asks for, with some that are given here."""
    asked = {one.name for one in _options(kind)} - given.keys()
    return kind(**given, **{name: getattr(options, name) for name in asked})


def words_of(settings: Any) -> list[str]:
    """The command line that asks for these settings."""
    words = []
    for one in _options(type(settings)):
        value = getattr(settings, one.name)
        if value is True:
            words.append(_flag(one))
        elif value is not None and value is not False:
            words += [_flag(one), str(value)]
    return words


def _options(kind: Any) -> list[Field[Any]]:
    return [one for one in fields(kind) if "argument" in one.metadata]


def _flag(one: Field[Any]) -> str:
    return f"--{one.metadata['flag'] or one.name.replace('_', '-')}"
