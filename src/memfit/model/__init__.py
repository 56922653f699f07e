"""The nouns of memfit: sizes, components, ledgers, run specs and plans. Standard library only."""

from memfit.model.after_learn import AfterEnd, AfterReading, HeldFrames
from memfit.model.changes import Changes
from memfit.model.checked import Checked
from memfit.model.comparison import Changed, Comparison, Course, lasting_name
from memfit.model.demo import Compared, Demo, DemoVariant, RecordedDemo, SystemDemo, SystemRun
from memfit.model.evidence import Evidence, EvidenceKind
from memfit.model.explanation import (
    Explanation,
    Grown,
    HeldArrays,
    HeldObjects,
    HeldReadings,
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
from memfit.model.finding import Advice, Finding, Fix, Severity, least_worth
from memfit.model.finished_job import FinishedJob, JobsComparison
from memfit.model.ledger import Component, Kind, Ledger, Peak, Place
from memfit.model.memory_request import MemoryRequest
from memfit.model.nodes import NodesPlan
from memfit.model.notebook import ShownInNotebooks
from memfit.model.phase import AFTER, PHASES, phase_of
from memfit.model.plan import Capacity, Crossing, DevicePlan, Limit, Plan
from memfit.model.profile import (
    BaselineChange,
    Bound,
    Counted,
    EnvCost,
    EnvReading,
    Growing,
    GrownHolder,
    GrowthKind,
    Judgement,
    MemoryVerdict,
    ObservationPart,
    Profile,
    ProfileStep,
    Shareable,
    Site,
    Stepped,
    Stepping,
)
from memfit.model.reading import (
    NO_SLOPE,
    DeviceReading,
    OtherProcesses,
    ProcessNames,
    Readings,
    Rehearsed,
    Replayed,
    Slope,
    WorkerReading,
)
from memfit.model.run_control import RunControl
from memfit.model.runspec import (
    ArraySpec,
    CallbackSpec,
    NetworkSpec,
    RunSpec,
    UpdateSpec,
    VecEnvSpec,
    WindowSpec,
)
from memfit.model.size import Size, between_readings, ceil_div, const, knob, maximum, minimum, size
from memfit.model.sweep import Line, Outcome, Point, Sweep, SweepStep
from memfit.model.system_document import Described, LogicCheck, Machine, SystemDocument
from memfit.model.trace import (
    Event,
    EventKind,
    Forecast,
    Growth,
    Member,
    Reading,
    RowsAt,
    Trace,
    at_fewer_times,
    fewer_points,
)
from memfit.model.watching import Frame, Target, Targets, Watched
