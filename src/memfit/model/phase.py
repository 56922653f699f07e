"""The phases of a training run, and the moments inside them.

A phase is one of `PHASES`. A moment is a phase or a dotted part of one (`update.flatten`): two
components of the same phase that are never alive together name different moments of it.
"""

PHASES = ("start", "build", "rollout", "update", "evaluate", "save")
AFTER = "evaluate.after"  # the moment that comes when training is over


def phase_of(moment: str) -> str:
    """`update` for `update.flatten`."""
    return moment.split(".", 1)[0]
