"""The page of examples: each script of examples/ with what it is, as it stands there."""

from __future__ import annotations

from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"
LANGUAGES = {".py": "python", ".toml": "toml", ".txt": "text"}


def examples_page() -> str:
    """All of them, in the order of their names."""
    parts = [
        (
            "# Examples\n\nThe scripts that these pages use, as they stand in `examples/`. Each "
            "runs in seconds without a graphics card; the commands of these pages work in that "
            "folder.\n"
        )
    ]
    for file in sorted(EXAMPLES.iterdir()):
        if language := LANGUAGES.get(file.suffix):
            text = file.read_text(encoding="utf-8").strip()
            parts.append(f"## {file.name}\n\n```{language}\n{text}\n```\n")
    return "\n".join(parts)
