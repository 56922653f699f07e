"""What the text of a Python file says by its syntax tree alone: nothing of it is ever run."""

from memfit.syntax.bindings import Binding, BindingKind
from memfit.syntax.calls import Arguments, argument, calls, in_package, keyword
from memfit.syntax.classes import Method, SelfAttribute, classes_with_base, methods, self_attributes
from memfit.syntax.loops import (
    enclosing,
    has_length,
    in_step_loop,
    is_env_step,
    loops_around,
    statements_of,
    steps_env,
    under_with,
)
from memfit.syntax.neighbours import family, read_beside
from memfit.syntax.source import FUNCTIONS, Source, dotted, last_name
from memfit.syntax.uses import is_assigned, is_emptied
from memfit.syntax.values import constant, number, origin, origins

__all__ = [
    "FUNCTIONS",
    "Arguments",
    "Binding",
    "BindingKind",
    "Method",
    "SelfAttribute",
    "Source",
    "argument",
    "calls",
    "classes_with_base",
    "constant",
    "dotted",
    "enclosing",
    "family",
    "has_length",
    "in_package",
    "in_step_loop",
    "is_assigned",
    "is_emptied",
    "is_env_step",
    "keyword",
    "last_name",
    "loops_around",
    "methods",
    "number",
    "origin",
    "origins",
    "read_beside",
    "self_attributes",
    "statements_of",
    "steps_env",
    "under_with",
]
