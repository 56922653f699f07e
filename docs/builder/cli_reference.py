"""The reference of the command line, made of the commands themselves."""

from __future__ import annotations

import inspect
import re
from typing import Any

from typer.main import get_command

from memfit.cli.app import app


def cli_page() -> str:
    """Every command with its arguments and options."""
    group: Any = get_command(app)
    parts = ["# Commands\n", _text(group.help or ""), *map(_command, group.commands.values())]
    return "\n".join(parts)


def _command(command: Any) -> str:
    context = command.make_context(command.name, [], resilient_parsing=True)
    usage = " ".join(["memfit", command.name, *command.collect_usage_pieces(context)])
    parts = [f"## memfit {command.name}\n", f"```text\n{usage}\n```\n", _text(command.help or "")]
    rows = [_row(*parameter.get_help_record(context)) for parameter in command.params]
    parts.append("| argument or option | what it does |\n| --- | --- |")
    return "\n".join([*parts, *rows, ""])


def _row(names: str, what: str) -> str:
    names = re.sub(r" <(?:str|path|list\[str\])>$", "", names)  # what each argument is
    return f"| `{names}` | {_escaped(what).replace('|', '&#124;')} |"


def _text(help_text: str) -> str:
    """Help as it is written in the code: paragraphs, and examples as a block."""
    paragraphs = []
    for paragraph in inspect.cleandoc(help_text).split("\n\n"):
        lines = [line for line in paragraph.split("\n") if line.strip() not in ("", "\b")]
        first = lines[0].strip() if lines else ""
        if first == "Examples:":
            lines, begin = lines[1:], "```bash"
        elif "\b" in paragraph:
            begin = "```text"
        else:
            paragraphs.append(_escaped(" ".join(line.strip() for line in lines)))
            continue
        block = inspect.cleandoc("\n".join(lines))
        paragraphs.append(f"{begin}\n{block}\n```")
    return "\n\n".join(paragraphs) + "\n"


def _escaped(text: str) -> str:
    """Square brackets and stars outside of code as the characters that they are."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if part.startswith("`") else re.sub(r"([\[\]*<>])", r"\\\1", part) for part in parts
    )
