"""Results about processes made by hand: an explanation, a recording, and a frame of a live view."""

from __future__ import annotations

from memfit.model import (
    Event,
    EventKind,
    EvidenceKind,
    Explanation,
    Forecast,
    Frame,
    Grown,
    Growth,
    HeldReadings,
    Holder,
    Inside,
    Kind,
    Layer,
    Ledger,
    Limit,
    Member,
    Part,
    ProcessView,
    Reading,
    Repeated,
    RowsAt,
    Setting,
    Target,
    ThreadPool,
    Trace,
    Watched,
    const,
)
from memfit.units import GIB, MIB
from tests.samples import row

NOW = ("rollout",)
MEASURED = EvidenceKind.MEASURED


def _part(name: str, layer: Layer, size: int, *, reserved: int = 0, swap: int = 0) -> Part:
    return Part(
        name=name,
        layer=layer,
        bytes=size,
        resident=size,
        reserved=reserved or size,
        private=size,
        where="smaps",
        swap=swap,
    )


def _process(pid: int, parent: int, command: str, parts: tuple[Part, ...]) -> ProcessView:
    pss = sum(part.bytes for part in parts)
    pools = (
        ThreadPool(name="main", threads=1, names=("python",), reserved=8 * MIB, resident=120_000),
        ThreadPool(name="OpenMP", threads=3, names=("python",), reserved=24 * MIB, resident=90_000),
    )
    return ProcessView(
        pid=pid,
        parent=parent,
        name="python",
        command=command,
        seconds=3725.0,
        rss=pss + 40 * MIB,
        pss=pss,
        private=pss - 10 * MIB,
        reserved=4 * pss,
        parts=parts,
        pools=pools,
    )


def explanation() -> Explanation:
    """A training with a worker: it was read twice, and its process told what it holds."""
    main = _process(
        4711,
        1,
        "python train.py",
        (
            _part("lib.torch", Layer.LIBRARIES, 200 * MIB),
            _part("malloc.heap", Layer.HEAP, 300 * MIB, swap=2 * MIB),
            _part("blocks.7f00", Layer.BLOCKS, 700 * MIB, reserved=1024 * MIB),
        ),
    )
    worker = _process(4712, 4711, "", (_part("malloc.heap", Layer.HEAP, 50 * MIB),))
    ledger = Ledger(
        components=(
            row(
                "model.rollout_buffer.observations",
                Kind.BUFFER,
                const(700 * MIB),
                NOW,
                evidence=MEASURED,
                where="the process itself",
                reserved=const(1024 * MIB),
            ),
            row("malloc.heap", Kind.HEAP, const(348 * MIB), NOW, where="smaps"),
            row("lib.torch", Kind.BASE, const(200 * MIB), NOW, where="smaps"),
            row("kernel.vdso", Kind.UNATTRIBUTED, const(2 * MIB), NOW, where="smaps"),
            row("stacks", Kind.STACKS, const(9_000), NOW, where="smaps"),
        )
    )
    return Explanation(
        pid=4711,
        processes=(main, worker),
        ledger=ledger,
        pss_bytes=1250 * MIB + 9_000,
        named_share=0.9984,
        limit=Limit(bytes=4 * GIB, source="cgroup v2"),
        available_bytes=2 * GIB,
        settings=(Setting(name="torch threads", configured="OMP_NUM_THREADS=3", used="3"),),
        device_bytes={"0: a card": 512 * MIB},
        inside=_inside(),
        growth=(
            Grown(name="malloc.heap", before=338 * MIB, after=348 * MIB, seconds=10.0),
            Grown(name="lib.torch", before=200 * MIB, after=200 * MIB, seconds=10.0),
        ),
        growth_seconds=10.0,
        notes=("one process ended while it was read",),
        seconds=1.234,
    )


def _inside() -> Inside:
    return Inside(
        holders=(
            Holder(
                path="model.rollout_buffer.observations",
                kind=Kind.BUFFER,
                bytes=700 * MIB,
                reserved=1024 * MIB,
                count=1,
                what="numpy uint8 (1024, 8, 4, 84, 84)",
                also=("callback.locals['self']",),
                pid=4711,
            ),
            Holder(
                path="envs[3].history",
                kind=Kind.OBJECTS,
                bytes=12 * MIB,
                reserved=12 * MIB,
                count=40_000,
                what="list of dicts",
                pid=4711,
            ),
        ),
        repeated=(
            Repeated(
                kind="wide",
                holders=("envs[3].history",),
                saves_bytes=6 * MIB,
                message="float64 whose values float32 holds",
            ),
        ),
        asked=(4711,),
        held_share=0.871,
        seconds=0.42,
        longest_hold_seconds=0.005,
        readings=(
            HeldReadings(
                pid=4711,
                named=(900 * MIB, 1036 * MIB),
                private=(1190 * MIB, 1190 * MIB),
                kept=1,
            ),
        ),
        pools={"small": 30 * MIB},
        notes=("4712 does not listen",),
    )


FORECAST = Forecast(
    growth=Growth.LEAKING,
    bytes_per_second=5.0 * MIB,
    reaches_limit_at=118.0,
    low=117.0,
    high=None,
    step=59_000,
)


def trace() -> Trace:
    """A run that was recorded, told its phases and was ended above its limit."""
    rows = (
        row("malloc.heap", Kind.HEAP, const(500 * MIB), NOW, evidence=MEASURED, where="smaps"),
        row("lib.torch", Kind.BASE, const(200 * MIB), NOW, evidence=MEASURED, where="smaps"),
    )
    return Trace(
        command=("python", "train.py", "--seed", "1"),
        pid=4711,
        started=1_700_000_000.0,
        limit=Limit(bytes=690 * MIB, source="--limit"),
        readings=tuple(
            Reading(seconds=4.0 * i, bytes=(100 + 20 * i) * MIB, threads=4) for i in range(31)
        ),
        events=(
            Event(seconds=0.0, kind=EventKind.START, text="python train.py --seed 1"),
            Event(seconds=3.0, kind=EventKind.PHASE, text="rollout"),
            Event(seconds=119.5, kind=EventKind.PHASE, text="update"),
            Event(
                seconds=120.0,
                kind=EventKind.TERMINATED,
                text="ended above its limit of 690 MiB",
                bytes=700 * MIB,
            ),
        ),
        peak_ledger=Ledger(components=rows),
        rows_at=120.0,
        rows_over_time=(
            RowsAt(seconds=10.0, ledger=Ledger(components=(rows[1],))),
            RowsAt(seconds=120.0, ledger=Ledger(components=rows)),
        ),
        members=tuple(
            Member(
                pid=pid,
                name=name,
                readings=tuple(Reading(seconds=10.0 * i, bytes=i * each) for i in range(13)),
            )
            for pid, name, each in ((4711, "python train.py", 40 * MIB), (4712, "worker", 5 * MIB))
        ),
        exit_code=143,
        holders={"env.frames": 30 * MIB, "model.policy parameters": 5 * MIB},
    )


def frame() -> Frame:
    """Two processes below a limit that a leak will reach; one target is missed."""
    return Frame(
        title="python train.py",
        bytes=3 * GIB,
        limit=Limit(bytes=4 * GIB, source="--limit"),
        processes=(
            Watched(pid=10, depth=0, name="python train.py", bytes=2 * GIB, threads=3),
            Watched(pid=11, depth=1, name="worker", bytes=GIB, threads=9),
        ),
        rows=(("malloc.heap", 2 * GIB), ("python.objects", 100 * MIB)),
        readings=tuple(Reading(seconds=i, bytes=i * MIB) for i in range(100)),
        forecast=Forecast(
            growth=Growth.LEAKING, bytes_per_second=MIB, reaches_limit_at=120, low=110, high=140
        ),
        targets=(Target(name="threads per process", wanted="4", found="9", met=False),),
    )
