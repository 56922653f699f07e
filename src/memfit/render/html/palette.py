"""Which colour stands for which kind of memory, in every picture."""

from __future__ import annotations

from memfit.model import Kind

# Names that the page replaces by the colours of its theme.
INK, MUTED, BAD, GOOD, ACCENT, PAPER = "@ink", "@muted", "@bad", "@good", "@accent", "@paper"

KINDS: dict[str, str] = {
    Kind.BASE: "#566c80",
    Kind.FILE: "#93a6b6",
    Kind.BUFFER: "#2f6bd0",
    Kind.COPIES: "#7db3f2",
    Kind.ARRAYS: "#1597b8",
    Kind.PARAMETERS: "#7747c2",
    Kind.GRADIENTS: "#b48ae6",
    Kind.OPTIMIZER: "#c43d8b",
    Kind.ACTIVATIONS: "#d8483e",
    Kind.SCRATCH: "#f0938a",
    Kind.ENV_STATE: "#e39a2d",
    Kind.LARGE: "#9a6237",
    Kind.OBJECTS: "#4c9f45",
    Kind.HEAP: "#a8bd3a",
    Kind.WORKER: "#16877a",
    Kind.STACKS: "#72cbb9",
    Kind.FRAGMENTATION: "#c2ab86",
    Kind.UNATTRIBUTED: "#a3a3a3",
}
# For what is no kind of memory: processes, runs, holders. Neighbours differ in light too.
SERIES = (
    *("#2f6bd0", "#e39a2d", "#16877a", "#c43d8b", "#7db3f2", "#9a6237", "#7747c2", "#a8bd3a"),
    *("#d8483e", "#566c80", "#72cbb9", "#b48ae6"),
)
PHASES = {
    "start": "#93a6b6",
    "build": "#e39a2d",
    "rollout": "#2f6bd0",
    "update": "#c43d8b",
    "evaluate": "#16877a",
    "save": "#9a6237",
}
SEVERITIES = {"error": "#d8483e", "warning": "#e39a2d", "info": "#2f6bd0"}


def kind_colour(kind: str) -> str:
    """The colour of a kind; that of what is unattributed where it is unknown."""
    return KINDS.get(kind, KINDS[Kind.UNATTRIBUTED])


def series_colour(number: int) -> str:
    """The colour of one of several that have no order."""
    return SERIES[number % len(SERIES)]
