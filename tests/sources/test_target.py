"""A target becomes a job: scripts, notebooks, modules, and commands that start Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from memfit.errors import UsageError
from memfit.model.job import TargetKind
from memfit.sources.module_file import module_file
from memfit.sources.target import job_of, module_job


@pytest.fixture
def train(tmp_path: Path) -> str:
    file = tmp_path / "train.py"
    file.write_text("print('training')")
    return str(file)


@pytest.mark.parametrize(
    "words",
    [
        ["python", "TRAIN", "--seed", "1"],
        ["python3.11", "-u", "-X", "dev", "TRAIN", "--seed", "1"],
        ["/usr/bin/python3", "TRAIN", "--seed", "1"],
        ["TRAIN", "--seed", "1"],
        ["torchrun", "--standalone", "--nproc_per_node=1", "TRAIN", "--seed", "1"],
        ["python", "-m", "torch.distributed.run", "TRAIN", "--seed", "1"],
    ],
)
def test_a_command_names_a_script(words: list[str], train: str) -> None:
    job = job_of("", [train if word == "TRAIN" else word for word in words])
    assert (job.kind, job.target, job.args) == (TargetKind.SCRIPT, train, ("--seed", "1"))


def test_a_command_names_a_module() -> None:
    job = job_of("", ["python", "-m", "json.tool", "--help"])
    assert (job.kind, job.target, job.args) == (TargetKind.MODULE, "json.tool", ("--help",))


@pytest.mark.parametrize(
    "words",
    [[], ["python"], ["python", "-c", "1"], ["python", "-m"], ["bash", "x.sh"], ["torchrun"]],
)
def test_a_command_that_names_none_is_refused(words: list[str]) -> None:
    with pytest.raises(UsageError):
        job_of("", words)


@pytest.mark.parametrize("name", ["no.such.module", "json", "two words", "os."])
def test_a_module_that_cannot_be_run_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        module_job(name, [])


def test_a_module_is_found_without_importing_it(tmp_path: Path) -> None:
    package = tmp_path / "package_of_mine"
    package.mkdir()
    for name in ("__init__", "__main__", "train"):
        (package / f"{name}.py").write_text("1 // 0")
    path = [str(tmp_path)]
    assert module_file("package_of_mine.train", path) == package / "train.py"
    assert module_file("package_of_mine", path) == package / "__main__.py"
    assert module_file("package_of_mine.other", path) is None


def test_a_notebook_has_cells_of_code(tmp_path: Path) -> None:
    file = tmp_path / "train.ipynb"
    file.write_text('{"cells": [{"cell_type": "code", "source": ["x = 1"]}]}')
    assert job_of(file, []).kind is TargetKind.NOTEBOOK
    for text in ('{"cells": []}', "[]", "text"):
        file.write_text(text)
        with pytest.raises(UsageError, match="no Python notebook"):
            job_of(file, [])
