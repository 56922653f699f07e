"""`memfit check`: what it reads, what it says, and with which exit code it ends."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from memfit.cli import main

RETAINS = "loss.backward(retain_graph=True)\noptimizer.step()\n"
HEAVY = ("torch", "stable_baselines3", "gymnasium", "numpy", "jax")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A script with one warning."""
    path = tmp_path / "train.py"
    path.write_text(RETAINS)
    return path


def test_findings_are_told_with_their_place(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(script), "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    (finding,) = data["findings"]
    assert (data["kind"], data["files"], finding["code"]) == ("check", 1, "MF203")
    assert finding["where"] == f"{script}:1:1"
    assert (finding["line"], finding["column"], finding["severity"]) == (1, 1, "warning")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([], 0),
        (["--fail-on", "warning"], 5),
        (["--fail-on", "info"], 5),
        (["--fail-on", "error"], 0),
        (["--fail-on", "info", "--ignore", "MF203"], 0),
        (["--fail-on", "info", "--select", "MF1"], 0),
        (["--fail-on", "info", "--select", "MF1,MF2"], 5),
    ],
)
def test_the_exit_code_says_how_bad_it_is(script: Path, words: list[str], code: int) -> None:
    assert main(["check", str(script), *words]) == code


@pytest.mark.parametrize(
    ("comment", "left"),
    [
        ("# memfit: ignore[MF203]", 0),
        ("# memfit: ignore", 0),
        ("# memfit:ignore[MF101, MF2]", 0),
        ("# memfit: ignore[MF101]", 1),
        ("'# memfit: ignore'", 1),
    ],
)
def test_a_comment_keeps_a_finding_quiet(
    script: Path, comment: str, left: int, capsys: pytest.CaptureFixture[str]
) -> None:
    first, rest = RETAINS.split("\n", 1)
    script.write_text(f"{first}{';' if comment[0] == chr(39) else ''} {comment}\n{rest}")
    main(["check", str(script), "--format", "json"])
    data = json.loads(capsys.readouterr().out)
    assert (len(data["findings"]), data["ignored"]) == (left, 1 - left)


def test_settings_are_those_of_the_nearest_project(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.memfit]\nfail-on = "warning"\n')
    inner = tmp_path / "scripts"
    inner.mkdir()
    (inner / "train.py").write_text(RETAINS)
    assert main(["check", str(inner)]) == 5
    assert main(["check", str(inner), "--fail-on", "never"]) == 0
    (tmp_path / "pyproject.toml").write_text('[tool.memfit]\nfail-on = "info"\nignore = ["mf2"]\n')
    assert main(["check", str(inner)]) == 0
    (inner / "pyproject.toml").write_text("[tool.other]\n")
    assert main(["check", str(inner), "--fail-on", "info"]) == 5
    (inner / "pyproject.toml").write_text('[tool.memfit]\nfail-on = "info"\nexclude = ["tr*"]\n')
    (inner / "other.py").write_text("x = 1\n")
    assert main(["check", str(inner)]) == 0


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ("[tool.memfit]\nselct = []\n", "has no setting selct"),
        ("[tool.memfit]\nselect = 3\n", "select must be a list"),
        ('[tool.memfit]\nignore = ["MX1"]\n', "no check has a code that begins with 'MX1'"),
        ('[tool.memfit]\nfail-on = "much"\n', "fail-on must be one of"),
        ("[tool", "cannot be read"),
    ],
)
def test_bad_settings_are_named_with_their_file(
    script: Path, settings: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (script.parent / "pyproject.toml").write_text(settings)
    assert main(["check", str(script)]) == 2
    error = capsys.readouterr().err
    assert says in error and "pyproject.toml" in error


def test_a_syntax_error_is_told_at_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.py").write_text("x = 1\ny = (\n")
    (tmp_path / "good.py").write_text(RETAINS)
    assert main(["check", str(tmp_path), "--format", "json"]) == 5
    first, second = json.loads(capsys.readouterr().out)["findings"]
    assert (first["code"], first["severity"], first["line"]) == ("MF000", "error", 2)
    assert second["code"] == "MF203"


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("none.py", None, "there is no file"),
        ("data.py", b"x\0y", "is no text"),
        ("folder", "folder", "has no Python file"),
        ("night.db", b"x = 1\n", "cannot be read as a recording"),
        ("train.ipynb", b"{}", "is a notebook"),
    ],
)
def test_what_is_no_script_is_refused(
    tmp_path: Path,
    name: str,
    content: bytes | str | None,
    says: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if isinstance(content, bytes):
        (tmp_path / name).write_bytes(content)
    elif content is not None:
        (tmp_path / name).mkdir()
    assert main(["check", str(tmp_path / name)]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [[], ["--select", "XY"], ["--explain", "MF999"], ["a.py", "b.py", "--run"]]
)
def test_bad_usage_ends_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", *words, *([] if words[:1] != ["--select"] else ["a.py"])]) == 2
    assert capsys.readouterr().err.startswith("memfit: ")


def test_deep_nesting_is_no_crash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "deep.py"
    path.write_text("x = " + "(" * 5000 + ")" * 5000)
    assert main(["check", str(path)]) == 5
    assert "MF000" in capsys.readouterr().out
    path.write_text("x = " + "+".join(["1"] * 3000))
    assert main(["check", str(path)]) in (0, 5)


def test_environments_and_hidden_folders_are_passed_over(tmp_path: Path) -> None:
    for folder in (".hidden", "venv", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "train.py").write_text(RETAINS)
    (tmp_path / "other" / "pyvenv.cfg").write_text("")
    (tmp_path / "train.py").write_text("x = 1\n")
    assert main(["check", str(tmp_path), "--fail-on", "info"]) == 0


def test_one_file_that_is_no_text_does_not_end_the_check_of_a_directory(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (script.parent / "data.py").write_bytes(b"x\0y")
    assert main(["check", str(script.parent), "--format", "json"]) == 5
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [f["code"] for f in findings] == ["MF000", "MF203"]


def test_a_script_may_come_through_a_pipe(script: Path) -> None:
    command = f"{sys.executable} -m memfit check <(cat {script}) --fail-on warning"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 5 and "MF203" in done.stdout


def test_the_hook_of_pre_commit_does_what_it_says(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hooks = (Path(__file__).parents[2] / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    (entry,) = re.findall(r"^  entry: memfit (.+)$", hooks, re.MULTILINE)
    assert main([*entry.split(), str(script)]) == 5
    script.write_text("x = 1\n")
    assert main([*entry.split(), str(script)]) == 0


def test_the_page_of_a_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--explain", "mf203", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["kind"], data["code"]) == ("check-page", "MF203")
    assert "retain_graph=True" in data["bad"] and "retain_graph" not in data["good"]


def test_sarif_and_annotations(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", str(script), "--format", "sarif"])
    data = json.loads(capsys.readouterr().out)
    (run,) = data["runs"]
    (result,) = run["results"]
    assert (data["version"], result["ruleId"], result["level"]) == ("2.1.0", "MF203", "warning")
    region = result["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 1, "startColumn": 1}
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["MF203"]
    main(["check", str(script), "--format", "github"])
    out = capsys.readouterr().out
    assert out.startswith(f"::warning file={script},line=1,col=1,title=MF203::") and out[-1] == "\n"


def test_a_script_is_read_fast_and_never_run(tmp_path: Path) -> None:
    """A thousand lines that would end the program; neither torch nor the script is imported."""
    path = tmp_path / "long.py"
    path.write_text("raise SystemExit(9)\n" + "import numpy as np\nx = np.zeros((3, 4))\n" * 500)
    code = (
        "import sys\nfrom memfit.cli import main\n"
        f"code = main(['check', {str(path)!r}])\n"
        f"assert not set({HEAVY}) & set(sys.modules), 'imported'\nassert code == 0, code"
    )
    times = []
    for _ in range(3):
        before = _children_seconds()
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60)
        times.append(_children_seconds() - before)
    assert min(times) < 1.0


def _children_seconds() -> float:
    """Time of the processor, so that other work on the machine does not count."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
