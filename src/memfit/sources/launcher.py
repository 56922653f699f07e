"""What a launcher of equal processes would start here: torchrun, in each of its forms."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memfit.errors import UsageError

LAUNCHERS = ("torchrun", "torch.distributed.run", "torch.distributed.launch")
_FLAGS = ("standalone", "m", "module", "no_python", "run_path", "virtual_local_rank", "use_env")
_CARD = re.compile(r"nvidia\d+$")


@dataclass(frozen=True, kw_only=True)
class Launched:
    """A program of so many equal processes on this machine; of `nodes` machines this is one."""

    program: tuple[str, ...]
    module: bool = False
    command: bool = False  # a whole command, not only what Python is to run
    ranks: int = 1
    nodes: int = 1

    @property
    def note(self) -> str:
        """What a plan says of it."""
        each = "process" if self.ranks == 1 else f"{self.ranks} processes"
        more = f", on one of {self.nodes} machines" if self.nodes > 1 else ""
        return f"planned is all that the launcher starts here: itself and {each}{more}"


def launched(words: Sequence[str], hint: str) -> Launched:
    """Read the arguments of a launcher; `hint` says what to write where they name no program."""
    given: dict[str, str] = {}
    at = 0
    while at < len(words) and words[at].startswith("-"):
        option, equals, value = words[at].partition("=")
        name = option.lstrip("-").replace("-", "_")
        at += 1
        if name not in _FLAGS and not equals:
            value = words[at] if at < len(words) else ""
            at += 1
        given[name] = value
    if at >= len(words):
        raise UsageError(f"the launcher names no script and no module: {hint}")
    return Launched(
        program=tuple(words[at:]),
        module="m" in given or "module" in given,
        command="no_python" in given,
        ranks=_ranks(_value(given, "nproc_per_node")),
        nodes=_nodes(_value(given, "nnodes")),
    )


def _value(given: dict[str, str], name: str) -> str:
    return given.get(name, os.environ.get(f"PET_{name.upper()}", "1"))


def _ranks(written: str) -> int:
    cards = sum(1 for name in os.listdir("/dev") if _CARD.match(name))
    match written:
        case "cpu":
            return os.cpu_count() or 1
        case "gpu":
            return max(1, cards)
        case "auto":
            return cards or os.cpu_count() or 1
    if not written.isdecimal() or not int(written):
        raise UsageError(
            f"--nproc-per-node {written}: give a number of processes, auto, cpu or gpu"
        )
    return int(written)


def _nodes(written: str) -> int:
    least, _, most = written.partition(":")
    count = most or least
    return int(count) if count.isdecimal() else 1


def is_launcher(word: str) -> bool:
    """Whether a word of a command, or a module, is a launcher."""
    return Path(word).name in LAUNCHERS
