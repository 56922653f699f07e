"""What a case of the benchmark of loops is."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

from benchmarks.accuracy.case import Case

SCRIPTS = Path(__file__).parent / "scripts"
TUNING, REPORT = "tuning", "report"


class Form(Enum):
    """How a training is started."""

    SCRIPT = "script"
    MODULE = "module"
    NOTEBOOK = "notebook"


@dataclass(frozen=True, kw_only=True)
class Loop(Case):
    """One training loop: how it is started, what its settings are and what is asked of a plan.

    `cycles` is how many cycles the run consists of; a cycle is a rollout with its update, or, in
    an off-policy loop, as many steps as its case says. `settings` are those that its memory
    depends on, by the names and with the values that the script has. `doubled` is the setting
    that the stage `whatif` changes, and `twice` are the arguments of a run that has it.
    `updates` is false of what trains without an optimizer, which a plan must say.
    """

    group: str
    cycles: int
    settings: Mapping[str, int] = field(default_factory=dict)
    doubled: str = ""
    twice: tuple[str, ...] = ()
    form: Form = Form.SCRIPT
    needs: tuple[str, ...] = ()
    updates: bool = True

    @property
    def path(self) -> Path:
        """Where the script, the notebook or the package is."""
        return SCRIPTS / self.script

    @property
    def text(self) -> str:
        """What the program's own file says; a launcher's arguments name its module."""
        if self.form is not Form.MODULE:
            return self.path.read_text()
        package = self.path / "train.py"
        launched = (
            SCRIPTS / f"{self.args[self.args.index('-m') + 1]}.py" if "-m" in self.args else ""
        )
        return Path(launched or package).read_text()

    @property
    def missing(self) -> list[str]:
        """Libraries that the script imports and that are not here."""
        return [name for name in self.needs if importlib.util.find_spec(name) is None]

    @property
    def command(self) -> list[str]:
        """How the training is run, without memfit."""
        match self.form:
            case Form.SCRIPT:
                start = [str(self.path)]
            case Form.MODULE:
                start = ["-m", self.script]
            case Form.NOTEBOOK:
                start = ["-m", "benchmarks.loops.notebook", str(self.path)]
        return [sys.executable, *start, *self.args]

    @property
    def target(self) -> list[str]:
        """How a plan is told what to run."""
        start = ["-m", self.script] if self.form is Form.MODULE else [str(self.path)]
        return [*start, "--", *self.args] if self.args else start

    def at_twice(self) -> Loop:
        """The same training with twice the setting that the stage `whatif` changes."""
        return replace(self, name=f"{self.name}-twice", args=self.twice)


def loop(
    name: str,
    script: str,
    args: str,
    covers: str,
    *,
    group: str = TUNING,
    cycles: int,
    settings: str = "",
    doubled: str = "",
    form: Form = Form.SCRIPT,
    needs: str = "",
    updates: bool = True,
) -> Loop:
    """Write a case in short: words are separated by blanks, settings written `name=value`.

    `doubled` is a setting and the option that carries it, as in `num_envs --num-envs`. An option
    that the case does not give is put behind its arguments.
    """
    known = {key: int(value) for key, value in (word.split("=") for word in settings.split())}
    setting, _, option = doubled.partition(" ")
    words = args.split()
    twice: tuple[str, ...] = ()
    if setting:
        twice = _changed(words, option, str(2 * known[setting]))
    return Loop(
        name,
        script if form is Form.MODULE else script + _SUFFIXES[form],
        tuple(words),
        tuple(covers.split()),
        group=group,
        cycles=cycles,
        settings=known,
        doubled=setting,
        twice=twice,
        form=form,
        needs=tuple(needs.split()),
        updates=updates,
    )


_SUFFIXES = {Form.SCRIPT: ".py", Form.NOTEBOOK: ".ipynb"}


def _changed(words: list[str], option: str, value: str) -> tuple[str, ...]:
    if option not in words:
        return (*words, option, value)
    place = words.index(option)
    return (*words[: place + 1], value, *words[place + 2 :])
