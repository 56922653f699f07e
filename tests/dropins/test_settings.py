"""Settings of threads and malloc: what is set, what is told to children, what a plan asks for."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
import torch

from memfit.dropins import Settings, apply_settings, settings_for, trim
from memfit.dropins import settings as module
from memfit.errors import Unsupported, UsageError
from memfit.model import Component, Evidence, EvidenceKind, Kind, Ledger, Place, Size, const, knob

MIB = 2**20


def in_a_child(code: str) -> str:
    """What a fresh process prints; settings of malloc cannot be taken back in this one."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


def test_the_environment_says_the_same() -> None:
    wanted = Settings(threads=2, arenas=1, mmap_threshold="1MiB", trim_threshold=0, top_pad=4096)
    assert wanted.environment() == {
        "OMP_NUM_THREADS": "2",
        "MKL_NUM_THREADS": "2",
        "OPENBLAS_NUM_THREADS": "2",
        "MALLOC_ARENA_MAX": "1",
        "MALLOC_MMAP_THRESHOLD_": "1048576",
        "MALLOC_TRIM_THRESHOLD_": "0",
        "MALLOC_TOP_PAD_": "4096",
    }
    assert Settings(arenas=2).shell() == "MALLOC_ARENA_MAX=2"
    assert Settings().shell() == ""


def test_threads_are_set_in_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_num_threads()
    environment = dict(os.environ)
    try:
        apply_settings(threads=before + 1, children=False)
        assert torch.get_num_threads() == before + 1
        assert dict(os.environ) == environment
        monkeypatch.setattr(os, "environ", dict(environment))
        apply_settings(Settings(threads=before))
        assert os.environ["OMP_NUM_THREADS"] == str(before)
    finally:
        torch.set_num_threads(before)


def test_torch_is_not_loaded_for_its_threads() -> None:
    code = (
        "import sys; from memfit.dropins import apply_settings; apply_settings(threads=1);"
        "assert 'torch' not in sys.modules;"
        "import torch; print(torch.get_num_threads())"
    )
    assert in_a_child(code) == "1"


def test_children_start_with_the_settings() -> None:
    code = (
        "import subprocess, sys; from memfit.dropins import apply_settings;"
        "apply_settings(arenas=1, mmap_threshold='2MiB');"
        'show = \'import os; print(os.environ["MALLOC_ARENA_MAX"],'
        ' os.environ["MALLOC_MMAP_THRESHOLD_"])\';'
        "sys.stdout.write(subprocess.run([sys.executable, '-c', show], capture_output=True,"
        " text=True, check=True).stdout)"
    )
    assert in_a_child(code) == "1 2097152"


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"threads": 0}, "threads=0"),
        ({"arenas": -1}, "1 or more"),
        ({"arenas": 1.5}, "whole number"),
        ({"threads": True}, "whole number"),
        ({"arenas": "2"}, "whole number"),
        ({"mmap_threshold": -1}, "0 or more"),
        ({"mmap_threshold": "64MiB"}, "32MiB"),
        ({"mmap_threshold": "much"}, "write a number"),
        ({"stacks": 3}, "there are threads"),
        ({"settings": Settings(), "arenas": 1}, "not both"),
    ],
)
def test_wrong_settings_are_refused(given: dict[str, Any], match: str) -> None:
    with pytest.raises(UsageError, match=match):
        apply_settings(**given)


def test_another_c_library_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())
    with pytest.raises(Unsupported, match="set threads only"):
        apply_settings(arenas=1)
    assert trim() is False
    apply_settings(children=False)


def test_malloc_that_refuses_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_of_libc", lambda name: lambda *given: 0)
    with pytest.raises(UsageError, match="smaller value"):
        apply_settings(arenas=1, children=False)


def ledger(slack: int, workers: bool) -> Ledger:
    def row(name: str, kind: Kind, size: Size, *phases: str) -> Component:
        evidence = Evidence(kind=EvidenceKind.DERIVED, where="a test")
        return Component(
            name=name,
            kind=kind,
            size=size,
            phases=phases,
            evidence=evidence,
            place=Place.WORKERS if kind is Kind.WORKER else Place.MAIN,
        )

    rows = [
        row("base", Kind.BASE, const(100 * MIB), "rollout", "update"),
        row("slack.update", Kind.FRAGMENTATION, const(slack), "update"),
        row("slack.rollout", Kind.FRAGMENTATION, const(0), "rollout"),
    ]
    if workers:
        rows.append(row("workers", Kind.WORKER, knob("n_envs") * MIB, "rollout", "update"))
    return Ledger(components=tuple(rows), knobs={"n_envs": 3})


def test_a_plan_recommends_settings_where_they_help() -> None:
    assert settings_for(ledger(0, False), processors=8) == Settings()
    assert settings_for(ledger(4 * MIB, False), processors=8) == Settings()
    slack = settings_for(ledger(40 * MIB, False), processors=8)
    assert slack == Settings(arenas=2, mmap_threshold=MIB)
    assert settings_for(ledger(0, True), processors=8) == Settings(threads=5)
    assert settings_for(ledger(0, True), processors=2) == Settings(threads=1)
