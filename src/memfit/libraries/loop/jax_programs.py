"""The compiled programs of a JAX process, as XLA itself says what each of them takes."""

from __future__ import annotations

import re
import sys
from collections.abc import Container, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

from memfit.formulas.shared_rows import TRAINING
from memfit.model import ArraySpec, EvidenceKind
from memfit.model.trial import TrialReading

_LEAST = 2**20  # of temporaries: smaller programs are left to what is measured
_SHAPE = re.compile(r"\b[a-z]+(\d+)[a-z0-9]*\[([\d,]+)\]")


@dataclass(frozen=True, kw_only=True)
class Program:
    """Bytes of one compiled program while it runs; `shape` is of the largest array in it."""

    name: str
    temporaries: int
    outputs: int
    shape: tuple[int, ...]


def largest_program(names: Container[str]) -> Program | None:
    """Of programs named so, the one with the most temporaries; None where none has many."""
    jax: Any = sys.modules.get("jax")
    if jax is None:
        return None
    try:
        made = list(jax.local_devices(backend="cpu")[0].client.live_executables())
        stated = [(one.get_compiled_memory_stats(), one) for one in made]
        found = [
            (stats, one)
            for stats, one in stated
            if stats.temp_size_in_bytes >= _LEAST and _name(one) in names
        ]
    except Exception:  # noqa: BLE001 - another runtime says nothing, and all is measured anyway
        return None
    stats, one = max(found, key=lambda pair: pair[0].temp_size_in_bytes, default=(None, None))
    if stats is None or one is None:
        return None
    text = one.hlo_modules()[0].to_string()
    return Program(
        name=_name(one),
        temporaries=stats.temp_size_in_bytes,
        outputs=stats.output_size_in_bytes,
        shape=largest_shape(text, stats.temp_size_in_bytes),
    )


def _name(program: Any) -> str:
    return str(program.hlo_modules()[0].name).removeprefix("jit_")


def program_arrays(trial: TrialReading, names: Container[str]) -> Iterator[tuple[ArraySpec, int]]:
    """Rows of the largest program that is named so, and what of each was resident in a trial.

    A program that is the whole training and had not ended has its arrays at the trial's end, too.
    """
    program = largest_program(names) if trial.updates else None
    if program is None:
        return
    grown = max(0, trial.peaks.get("update", 0) - trial.built)
    phases = TRAINING if trial.whole else ("update",)
    cells = prod(program.shape)
    yield (
        ArraySpec(
            name=f"{program.name}.temporaries",
            shape=program.shape,
            dtype="bytes",
            itemsize=program.temporaries // cells,
            kind="arrays",
            phases=phases,
            evidence=EvidenceKind.MEASURED,
            where="XLA's memory analysis of the compiled program, by its largest array",
        ),
        min(grown, program.temporaries // cells * cells) if trial.whole else program.temporaries,
    )
    if trial.whole and program.outputs >= _LEAST:
        yield (
            ArraySpec(
                name=f"{program.name}.outputs",
                shape=(program.outputs,),
                dtype="bytes",
                itemsize=1,
                kind="arrays",
                phases=phases,
                evidence=EvidenceKind.MEASURED,
                where="XLA's memory analysis of the compiled program: what it returns",
            ),
            min(max(0, grown - program.temporaries), program.outputs),
        )


def largest_shape(text: str, most: int) -> tuple[int, ...]:
    """The shape of the largest array that a program's text names, of so many bytes at most.

    The one with the most dimensions tells the most of two that are as large.
    """
    best = max(_shapes(text, most), default=(0, 0, (1,)))
    return best[2]


def _shapes(text: str, most: int) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    for bits, words in set(_SHAPE.findall(text)):
        shape = tuple(int(word) for word in words.split(","))
        size = prod(shape) * max(1, int(bits) // 8)
        if size <= most:
            yield size, sum(n > 1 for n in shape), shape
