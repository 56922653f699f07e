"""What a launcher would start on this machine, in each way to write it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memfit.errors import UsageError
from memfit.model.job import TargetKind
from memfit.sources.launcher import launched
from memfit.sources.target import job_of, module_job

HINT = "write it so"


@pytest.mark.parametrize(
    ("words", "ranks"),
    [
        ("train.py --seed 1", 1),
        ("--nproc-per-node 2 train.py --seed 1", 2),
        ("--nproc_per_node=3 train.py --seed 1", 3),
        ("--standalone --nnodes=1 --nproc-per-node=2 --max-restarts 3 train.py --seed 1", 2),
        ("--rdzv-backend c10d --rdzv-endpoint host:1 --nproc-per-node 4 train.py --seed 1", 4),
        ("-r 3 -t 3 --log-dir logs.py --nproc-per-node 2 train.py --seed 1", 2),
        ("--nproc-per-node cpu train.py --seed 1", os.cpu_count()),
    ],
)
def test_options_are_told_from_the_program(words: str, ranks: int) -> None:
    found = launched(words.split(), HINT)
    assert (found.program, found.ranks) == (("train.py", "--seed", "1"), ranks)
    assert not found.module


@pytest.mark.parametrize("flag", ["-m", "--module"])
def test_a_module_is_one(flag: str) -> None:
    found = launched([flag, "--nproc-per-node", "2", "pkg.train", "-m", "x"], HINT)
    assert (found.program, found.module, found.ranks) == (("pkg.train", "-m", "x"), True, 2)


@pytest.mark.parametrize(("nodes", "count"), [("1", 1), ("2", 2), ("1:4", 4)])
def test_other_machines_are_told_of(nodes: str, count: int) -> None:
    found = launched(["--nnodes", nodes, "--nproc-per-node", "2", "train.py"], HINT)
    assert found.nodes == count
    assert ("machines" in found.note) == (count > 1)


@pytest.mark.parametrize(
    "words", [[], ["--standalone"], ["--nproc-per-node"], ["--nproc-per-node", "two", "train.py"]]
)
def test_what_starts_nothing_is_refused(words: list[str]) -> None:
    with pytest.raises(UsageError):
        launched(words, HINT)


def test_processes_are_asked_for_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PET_NPROC_PER_NODE", "5")
    assert launched(["train.py"], HINT).ranks == 5


def test_every_form_becomes_the_same_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "pkg_of_mine"
    package.mkdir()
    (package / "train.py").write_text("print('training')")
    monkeypatch.chdir(tmp_path)
    script, options = str(package / "train.py"), ["--standalone", "--nproc-per-node", "2"]
    for job in (
        job_of("", ["torchrun", *options, script, "--seed", "1"]),
        job_of("", ["/usr/bin/torchrun", *options, script, "--seed", "1"]),
        job_of("", ["python", "-m", "torch.distributed.run", *options, script, "--seed", "1"]),
        job_of("", ["torchrun", *options, "--no-python", "python", script, "--seed", "1"]),
        module_job("torch.distributed.run", [*options, script, "--seed", "1"]),
    ):
        assert (job.kind, job.target) == (TargetKind.SCRIPT, script)
        assert (job.args, job.ranks) == (("--seed", "1"), 2)
    job = module_job("torch.distributed.run", [*options, "-m", "pkg_of_mine.train", "--seed", "1"])
    assert (job.kind, job.target, job.ranks) == (TargetKind.MODULE, "pkg_of_mine.train", 2)
