"""Results that stand beside each other, made by hand: sweeps, a comparison, demonstrations."""

from __future__ import annotations

from dataclasses import replace

from memfit.api.memory_request import memory_request
from memfit.model import (
    Advice,
    Changed,
    Checked,
    Compared,
    Comparison,
    Course,
    Demo,
    Described,
    Finding,
    FinishedJob,
    JobsComparison,
    Line,
    LogicCheck,
    Machine,
    MemoryRequest,
    Outcome,
    Plan,
    Point,
    RecordedDemo,
    Severity,
    Sweep,
    SystemDemo,
    SystemDocument,
    SystemRun,
)
from memfit.units import GIB, MIB
from tests.samples import dqn_plan, ppo_plan
from tests.samples_live import FORECAST, trace
from tests.samples_optimized import optimized

LINE = Line(fixed_bytes=300 * MIB, bytes_per_unit=2.5 * MIB, low=2.4 * MIB, high=2.6 * MIB)


def sweep_of_a_target() -> Sweep:
    """A training at three sizes, planned too, the last of which goes over the limit."""
    return Sweep(
        command=(),
        target="train.py",
        knob="n_envs",
        limit_bytes=GIB,
        limit_source="--limit",
        points=(
            Point(
                value=1,
                peak_bytes=303 * MIB,
                outcome=Outcome.DONE,
                seconds=4.25,
                exit_code=0,
                planned_bytes=300 * MIB,
            ),
            Point(
                value=100,
                peak_bytes=550 * MIB,
                outcome=Outcome.DONE,
                seconds=12.0,
                exit_code=0,
                planned_bytes=561 * MIB,
            ),
            Point(
                value=1000,
                peak_bytes=1025 * MIB,
                outcome=Outcome.OUT_OF_MEMORY,
                seconds=3.0,
                planned_bytes=2800 * MIB,
            ),
        ),
        line=LINE,
        largest={"laptop-8gb": (8 * GIB, 3156), "24GiB": (24 * GIB, 9710)},
        planned={"laptop-8gb": 3100, "24GiB": None},
        notes=("the replay buffer was filled as far as the run fills it",),
        seconds=21.5,
    )


def sweep_of_a_command() -> Sweep:
    """Any program: nothing is planned, one run failed, and no line can be drawn."""
    return Sweep(
        command=("python", "my train.py", "--agents", "{agents}"),
        knob="agents",
        limit_bytes=16 * GIB,
        limit_source="RAM",
        points=(
            Point(value=10, peak_bytes=80 * MIB, outcome=Outcome.DONE, seconds=1.0, exit_code=0),
            Point(
                value=20,
                peak_bytes=30 * MIB,
                outcome=Outcome.FAILED,
                seconds=0.5,
                exit_code=1,
                said="Traceback\nValueError: 20 agents are too many\n",
            ),
        ),
        line=None,
        largest={},
        seconds=1.5,
    )


def comparison() -> Comparison:
    """One row grew, one shrank, one is new."""
    return Comparison(
        before="yesterday.db",
        after="today.db",
        before_bytes=1000 * MIB,
        after_bytes=1100 * MIB,
        rows=(
            Changed(name="malloc.heap", before=400 * MIB, after=560 * MIB),
            Changed(name="blocks", before=500 * MIB, after=420 * MIB),
            Changed(name="model.policy grad", before=0, after=20 * MIB),
        ),
        before_course=Course(readings=tuple((5.0 * i, 100 * i * MIB) for i in range(11))),
        after_course=Course(readings=tuple((5.0 * i, 110 * i * MIB) for i in range(11))),
    )


def demo() -> Demo:
    """A plan beside three real updates."""
    plan = ppo_plan()
    return Demo(
        described=replace(ppo_plan(), per="n_envs"),
        plan=plan,
        phases=(
            Compared(name="build", predicted=250 * MIB, measured=251 * MIB),
            Compared(name="update", predicted=330 * MIB, measured=322 * MIB),
        ),
        rows=(
            Compared(name="rollout.observations", predicted=14_450_688, measured=14_450_688),
            Compared(name="checkpoint", predicted=20_230_080, measured=0),
        ),
        peak=Compared(name="peak", predicted=plan.peak_bytes, measured=322 * MIB),
        recorded=RecordedDemo(
            trace=trace(),
            forecast=FORECAST,
            changes=("buffer=Smaller: half of it",),
            after=replace(trace(), readings=trace().readings[:20]),
        ),
        optimized=optimized(),
        updates=3,
        seconds=14.6,
    )


def system_demo() -> SystemDemo:
    """A reference system at two sizes; of the fitted one a line cannot be drawn."""

    def run(training: str, value: int, predicted: int, measured: int) -> SystemRun:
        return SystemRun(
            training=training,
            knob="agents",
            value=value,
            predicted=predicted * MIB,
            upper=(predicted + 20) * MIB,
            measured=measured * MIB,
            seconds=5.5,
        )

    return SystemDemo(
        system="drone",
        runs=(
            run("as described", 10, 330, 325),
            run("as described", 1000, 2800, 2850),
            run("made to fit", 1000, 310, 309),
        ),
        lines={"as described": (LINE, LINE), "made to fit": (None, None)},
        seconds=33.0,
    )


def system_document() -> SystemDocument:
    """The document of that system."""
    shown = system_demo()
    plan = replace(ppo_plan(), per="n_envs")
    issue = Finding(
        code="MF303",
        severity=Severity.WARNING,
        message="self.evaluation is made and never passed on",
        where="systems/drone/described.py:46:31",
        fix="callback=[..., self.evaluation] in learn()",
    )
    return SystemDocument(
        date="2026-11-19",
        machine=Machine(
            processor="A processor", cores=2, ram_bytes=24 * GIB, software=("Python 3.11.7",)
        ),
        demo=shown,
        ways=(
            Described(name="as described", plan=plan),
            Described(name="made to fit", plan=replace(plan, findings=(), advice=())),
        ),
        beside=(shown.runs[1], shown.runs[2]),
        issues=(issue,),
        logic=(
            LogicCheck(code="MF303", title="a callback is never passed on.", found=(issue,)),
            LogicCheck(code="MF312", title="the run ends before it learns."),
        ),
        seconds=99.0,
    )


def checked() -> Checked:
    """Findings of two scripts and of a run."""
    return Checked(
        targets=("scripts",),
        findings=(
            Finding(
                code="MF000",
                severity=Severity.ERROR,
                message="this is no Python: '(' was never closed",
                where="scripts/bad, old.py:3:7",
                path="scripts/bad, old.py",
                line=3,
                column=7,
                fix="correct the line, or leave the file out with exclude",
            ),
            Finding(
                code="MF203",
                severity=Severity.WARNING,
                message="the graph is retained, and no backward pass uses it again",
                where="scripts/train.py:12:5",
                path="scripts/train.py",
                line=12,
                column=5,
                fix="backward() without retain_graph",
            ),
            Finding(
                code="MF008",
                severity=Severity.INFO,
                message="batch_size 64 does not divide the rollout, 100% sure\nof it",
                where="model.batch_size",
                bytes=4096,
            ),
        ),
        files=2,
        ignored=1,
        advice=(Advice(code="MF011", saves_bytes=3 * MIB, change="a buffer", safe=True),),
        notes=("a remark",),
        titles={"MF203": "the last backward pass keeps its graph."},
        seconds=0.25,
    )


def requested() -> tuple[Plan, MemoryRequest]:
    """A plan, and what its run is to be given."""
    plan = replace(dqn_plan(), doubt={"measured": 230 * MIB, "derived": GIB, "assumed": 0})
    return plan, memory_request(plan, "kubernetes")


def jobs() -> JobsComparison:
    """Three jobs of one plan: as planned, killed above its bound, and never measured."""
    rows = (
        FinishedJob(
            job="101",
            name="ppo",
            state="COMPLETED",
            requested_bytes=2 * GIB,
            peak_bytes=1010 * MIB,
        ),
        FinishedJob(
            job="102",
            name="ppo wide",
            state="OUT_OF_MEMORY",
            requested_bytes=GIB + 100 * MIB,
            peak_bytes=1120 * MIB,
        ),
        FinishedJob(
            job="103",
            name="ppo",
            state="CANCELLED by 1000",
            requested_bytes=None,
            peak_bytes=None,
        ),
    )
    return JobsComparison(
        plan="plan.json",
        planned_bytes=1000 * MIB,
        upper_bytes=1060 * MIB,
        jobs=rows,
        notes=("1 ended before Slurm had a reading",),
    )
