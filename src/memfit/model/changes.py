"""What a run gets in the place of its own settings and parts, so that a fix can be tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

# The places of a run that a part can take.
ROLLOUT, REPLAY = "rollout_buffer_class", "replay_buffer_class"
WORKERS, ALGORITHM, OBSERVATION = "vec_env_cls", "algorithm", "observation"


@dataclass(frozen=True, kw_only=True)
class Changes:
    """One edit of a run, in parts that do not depend on each other.

    `knobs` are settings by the names that a plan has for them, `options` other arguments of the
    algorithm. `parts` say by the place that they take which part of `memfit.dropins`, or which way
    of the library, is put there. `variables` are of the environment that the run starts in.
    `update` are facts of how a described run updates, by the names of its spec. `once` are
    functions and classes, by `module:name`, that build each thing once for all envs.
    """

    knobs: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    update: Mapping[str, bool] = field(default_factory=dict)
    once: Mapping[str, bool] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return any(getattr(self, one.name) for one in fields(self))

    def meets(self, other: Changes) -> bool:
        """Whether both change the same thing, so that only one of them can be made."""
        pairs = ((getattr(self, one.name), getattr(other, one.name)) for one in fields(self))
        return any(set(own) & set(theirs) for own, theirs in pairs)

    def with_all(self, other: Changes) -> Changes:
        """Both edits together."""
        both = {
            one.name: {**getattr(self, one.name), **getattr(other, one.name)}
            for one in fields(self)
        }
        return Changes(**both)
