"""What can be asked of `optimize`, and what is refused before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

import memfit
from memfit.api.optimize_goal import parse_goal
from memfit.api.optimize_patch import script_to_patch
from memfit.api.optimize_runs import Run, Runs
from memfit.api.tried_fixes import tried_fix
from memfit.errors import UsageError
from memfit.model import Changes
from memfit.model.job import Job, TargetKind, Trained
from memfit.model.optimized import TriedFix
from memfit.units import GIB


def test_a_goal_is_a_size_or_settings() -> None:
    assert parse_goal(None) is None
    size, number = parse_goal("8GiB"), parse_goal(GIB)
    assert size is not None and size.bytes == 8 * GIB
    assert number is not None and number.bytes == GIB
    knobs = parse_goal("n_envs=1_000, n_steps=8")
    assert knobs is not None and knobs.knobs == {"n_envs": 1000, "n_steps": 8}


@pytest.mark.parametrize("text", ["0", "", "n_envs=", "n_envs=0", "=5", "n envs=5", "a=1,b", "1e"])
def test_other_goals_are_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(UsageError, match=r"[a-z]"):
        parse_goal(text)


def test_the_script_itself_is_never_written(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("pass\n")
    job = Job(kind=TargetKind.SCRIPT, target=str(script))
    link = tmp_path / "link.py"
    link.symlink_to(script)
    assert script_to_patch(job, tmp_path / "copy.py") == script
    for file in (script, link):
        with pytest.raises(UsageError, match="name another file"):
            script_to_patch(job, file)


def test_what_has_no_text_cannot_be_patched(tmp_path: Path) -> None:
    job = Job(kind=TargetKind.SPEC, target="run.toml")
    assert script_to_patch(job, None) is None
    with pytest.raises(UsageError, match="leave --write out"):
        script_to_patch(job, tmp_path / "copy.py")


def test_wrong_goals_and_codes_end_before_anything_runs(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import time\ntime.sleep(60)\n")
    with pytest.raises(UsageError, match="no check has a code"):
        memfit.optimize(script, select=("MF9",))
    with pytest.raises(UsageError, match="--goal"):
        memfit.optimize(script, goal="n_envs=many")


def run(digest: str, seconds: float = 1.0, peak: int = 100) -> Run:
    trained = Trained(updates=8, cycles=2, seconds=seconds, busy_seconds=seconds, digest=digest)
    return Run(peak_bytes=peak, trained=trained)


def runs(*unchanged: Run) -> Runs:
    job = Job(kind=TargetKind.SCRIPT, target="train.py")
    return Runs(job=job, timeout=1.0, updates=8, unchanged=list(unchanged))


def test_trainings_are_identical_only_where_unchanged_ones_are() -> None:
    same = runs(run("a"), run("a"))
    assert same.repeatable and same.identical(run("a")) is True
    assert same.identical(run("b")) is False
    differing = runs(run("a"), run("b"))
    assert differing.repeatable is False and differing.identical(run("a")) is None
    once = runs(run("a"))
    assert once.repeatable is None and once.identical(run("a")) is None
    untold = runs(run(""), run(""))
    assert untold.repeatable is None and untold.identical(run("")) is None


def test_times_stand_beside_those_of_the_runs_around_them() -> None:
    three = runs(run("a", 1.0), run("a", 2.0), run("a", 4.0))
    assert three.time_ratio(run("a", 3.0), 2) == 1.0
    assert three.time_noise == pytest.approx(1.5 / (7 / 3))
    assert three.time_ratio(Run(failed="no"), 2) is None


def test_the_peak_is_the_middle_one() -> None:
    assert runs(run("a", peak=1), run("a", peak=5), run("a", peak=2)).peak_bytes == 2
    assert runs(Run(failed="over")).peak_bytes is None


def test_changes_meet_where_they_are_of_the_same_thing() -> None:
    one, two = Changes(knobs={"n": 1}), Changes(knobs={"n": 2}, parts={"p": "x"})
    assert one.meets(two) and not one.meets(Changes(parts={"n": "x"}))
    assert one.with_all(Changes(parts={"p": "x"})) == Changes(knobs={"n": 1}, parts={"p": "x"})
    assert not Changes() and one


class _Played(Runs):
    """Runs whose peaks are told beforehand: of unchanged runs, and of those with a change."""

    def play(self, *peaks: int) -> None:
        self.left = list(peaks)

    def run(self, changes: Changes, knobs: Mapping[str, int] = MappingProxyType({})) -> Run:
        peak = self.left.pop(0)
        return Run(failed="no") if peak < 0 else run("a", peak=peak)


def tried(unchanged: tuple[int, ...], *peaks: int) -> tuple[TriedFix, list[int]]:
    made = _Played(
        job=Job(kind=TargetKind.SCRIPT, target="train.py"),
        timeout=1.0,
        updates=8,
        unchanged=[run("a", peak=peak) for peak in unchanged],
    )
    made.play(*peaks)
    fix = TriedFix(codes=("MF005",), change="x", saves_bytes=50, safe=True, changes=Changes())
    return tried_fix(fix, made, again=False), made.left


def test_a_saving_that_stands_out_is_measured_once() -> None:
    found, left = tried((1000, 1004), 900, 1)
    assert (found.measured_bytes, found.identical, left) == (102, True, [1])


def test_a_saving_that_does_not_stand_out_is_the_middle_of_three() -> None:
    # Once with the change, then unchanged once more, and twice with the change.
    found, left = tried((1000, 1040), 960, 1010, 930, 950)
    assert (found.measured_bytes, found.peak_bytes, left) == (60, 950, [])


def test_a_change_that_fails_is_not_repeated() -> None:
    found, left = tried((1000, 1040), -1, 7)
    assert (found.why_not, found.measured_bytes, left) == ("no", None, [7])
