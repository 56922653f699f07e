"""The nouns of memfit: sizes, components, ledgers, run specs and plans. Standard library only."""

from memfit.model.comparison import Changed, Comparison
from memfit.model.demo import Compared, Demo, SystemDemo, SystemRun
from memfit.model.evidence import Evidence, EvidenceKind
from memfit.model.explanation import (
    Explanation,
    Grown,
    HeldArrays,
    HeldObjects,
    Holder,
    Inside,
    Layer,
    Native,
    Part,
    ProcessView,
    Repeated,
    Setting,
    ThreadPool,
    Told,
)
from memfit.model.expression import names_in, parse_size
from memfit.model.finding import Advice, Finding, Fix, Severity
from memfit.model.ledger import Component, Kind, Ledger, Peak, Place
from memfit.model.phase import PHASES, phase_of
from memfit.model.plan import Capacity, Crossing, Limit, Plan
from memfit.model.reading import NO_SLOPE, Readings, Rehearsed, Slope, WorkerReading
from memfit.model.runspec import (
    ArraySpec,
    CallbackSpec,
    NetworkSpec,
    RunSpec,
    UpdateSpec,
    VecEnvSpec,
)
from memfit.model.size import Size, ceil_div, const, knob, maximum, minimum, size
from memfit.model.sweep import Line, Outcome, Point, Sweep, SweepStep
from memfit.model.trace import Event, EventKind, Forecast, Growth, Reading, Trace
from memfit.model.watching import Frame, Target, Targets, Watched

__all__ = [
    "NO_SLOPE",
    "PHASES",
    "Advice",
    "ArraySpec",
    "CallbackSpec",
    "Capacity",
    "Changed",
    "Compared",
    "Comparison",
    "Component",
    "Crossing",
    "Demo",
    "Event",
    "EventKind",
    "Evidence",
    "EvidenceKind",
    "Explanation",
    "Finding",
    "Fix",
    "Forecast",
    "Frame",
    "Grown",
    "Growth",
    "HeldArrays",
    "HeldObjects",
    "Holder",
    "Inside",
    "Kind",
    "Layer",
    "Ledger",
    "Limit",
    "Line",
    "Native",
    "NetworkSpec",
    "Outcome",
    "Part",
    "Peak",
    "Place",
    "Plan",
    "Point",
    "ProcessView",
    "Reading",
    "Readings",
    "Rehearsed",
    "Repeated",
    "RunSpec",
    "Setting",
    "Severity",
    "Size",
    "Slope",
    "Sweep",
    "SweepStep",
    "SystemDemo",
    "SystemRun",
    "Target",
    "Targets",
    "ThreadPool",
    "Told",
    "Trace",
    "UpdateSpec",
    "VecEnvSpec",
    "Watched",
    "WorkerReading",
    "ceil_div",
    "const",
    "knob",
    "maximum",
    "minimum",
    "names_in",
    "parse_size",
    "phase_of",
    "size",
]
