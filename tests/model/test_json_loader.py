"""Nouns that cross from one process to another come back as they were."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memfit.model import (
    AfterEnd,
    AfterReading,
    ArraySpec,
    CallbackSpec,
    EvidenceKind,
    HeldFrames,
    NetworkSpec,
    OtherProcesses,
    Place,
    Readings,
    Rehearsed,
    RunSpec,
    Slope,
    UpdateSpec,
    VecEnvSpec,
    WindowSpec,
    WorkerReading,
)
from memfit.model.job import Answer, Job, Look, Status, TargetKind
from memfit.model.json_loader import from_json, to_json

T = TypeVar("T")


def there_and_back(noun: T) -> T:
    """The noun as another process reads it."""
    return from_json(type(noun), json.loads(json.dumps(to_json(noun))))


words = st.text(max_size=6)
numbers = st.integers(-(2**70), 2**70)
shares = st.floats(allow_nan=False, allow_infinity=False)
knobs = st.dictionaries(words, numbers, max_size=3)
sizes = st.one_of(numbers, words)
plain = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, shares, words),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=3)),
    max_leaves=5,
)


def few(one: st.SearchStrategy[T]) -> st.SearchStrategy[tuple[T, ...]]:
    return st.lists(one, max_size=2).map(tuple)


slopes = st.builds(Slope, fixed=numbers, per_unit=numbers)
arrays = st.builds(
    ArraySpec,
    name=words,
    shape=few(sizes),
    dtype=words,
    itemsize=numbers,
    kind=words,
    phases=few(words),
    filled=st.one_of(st.none(), sizes),
    pieces=sizes,
    copied_in=words,
    mapped=st.booleans(),
    place=st.sampled_from(Place),
    evidence=st.sampled_from(EvidenceKind),
    where=words,
)
specs = st.builds(
    RunSpec,
    library=words,
    version=words,
    algorithm=words,
    policy=words,
    knobs=knobs,
    on_policy=st.booleans(),
    observation=few(arrays),
    arrays=few(arrays),
    windows=few(st.builds(WindowSpec, name=words, length=numbers, new=numbers, row_bytes=numbers)),
    networks=few(
        st.builds(NetworkSpec, name=words, parameter_bytes=numbers, gradient_bytes=numbers)
    ),
    vec_env=st.one_of(
        st.none(), st.builds(VecEnvSpec, kind=words, wrappers=few(words), stack=numbers)
    ),
    callbacks=few(st.builds(CallbackSpec, kind=words, saves_replay_buffer=st.booleans())),
    update=st.builds(
        UpdateSpec, batch=sizes, minibatch=sizes, steps=sizes, records_gradients=st.booleans()
    ),
    scale=knobs,
    length=words,
    first_update=sizes,
    notes=few(words),
)
rehearsals = st.builds(Rehearsed, knobs=knobs, moments=knobs)
readings = st.builds(
    Readings,
    stopped=numbers,
    warm=numbers,
    unit=numbers,
    matched_share=shares,
    unmatched=numbers,
    assumed=st.booleans(),
    activations=st.one_of(st.none(), slopes),
    live=slopes,
    growth=st.dictionaries(words, slopes, max_size=2),
    growth_spread=knobs,
    workers=st.one_of(
        st.none(),
        st.builds(WorkerReading, started=numbers, each_bytes=numbers, shared_bytes=numbers),
    ),
    others=few(
        st.builds(OtherProcesses, name=words, count=numbers, private_bytes=numbers, what=words)
    ),
    rehearsed=few(rehearsals),
    notes=few(words),
)
followed = st.builds(
    AfterReading,
    grown=numbers,
    calling=words,
    model_alive=st.booleans(),
    frames=st.one_of(
        st.none(),
        st.builds(
            HeldFrames,
            holder=words,
            count=numbers,
            each_bytes=numbers,
            shape=few(numbers),
            line=numbers,
        ),
    ),
    ended=st.sampled_from(AfterEnd),
)
answers = st.builds(
    Answer,
    status=st.sampled_from(Status),
    spec=st.one_of(st.none(), specs),
    readings=st.one_of(st.none(), readings),
    rehearsed=few(rehearsals),
    peaks=knobs,
    rows=knobs,
    after=st.one_of(st.none(), followed),
    again=st.booleans(),
    earlier_alive=st.booleans(),
    reason=words,
    settings=few(words),
    exit_code=st.one_of(st.none(), numbers),
)
jobs = st.builds(
    Job,
    kind=st.sampled_from(TargetKind),
    target=words,
    args=few(words),
    spec=st.dictionaries(words, plain, max_size=3),
    pickled=words,
    notes=few(words),
    look=st.sampled_from(Look),
    knobs=knobs,
    skip=numbers,
    scales=few(knobs),
    seconds=shares,
    updates=numbers,
)


@given(jobs)
@settings(max_examples=60)
def test_a_job_comes_back_as_it_was(job: Job) -> None:
    assert there_and_back(job) == job


@given(answers)
@settings(max_examples=60)
def test_an_answer_comes_back_as_it_was(answer: Answer) -> None:
    assert there_and_back(answer) == answer


def full_answer() -> Answer:
    array = ArraySpec(
        name="rewards",
        shape=("n_steps", 4),
        dtype="float32",
        itemsize=4,
        place=Place.SHARED,
        evidence=EvidenceKind.ASSUMED,
    )
    return Answer(
        status=Status.SURVEYED,
        spec=RunSpec(
            library="torch",
            version="2",
            algorithm="PPO",
            policy="Net",
            knobs={"n_steps": 7},
            on_policy=True,
            arrays=(array,),
            vec_env=VecEnvSpec(kind="SubprocVecEnv", wrappers=("VecMonitor",)),
        ),
        readings=Readings(
            stopped=1,
            warm=2,
            unit=3,
            activations=Slope(fixed=4, per_unit=5),
            growth={"update": Slope(fixed=6, per_unit=7)},
            workers=WorkerReading(started=2, each_bytes=8, shared_bytes=9),
            rehearsed=(Rehearsed(knobs={"n_steps": 7}, moments={"update": 10}),),
        ),
    )


def test_nouns_within_nouns_have_their_own_types_again() -> None:
    back = there_and_back(full_answer())
    assert type(back.status) is Status
    assert back.spec is not None and back.readings is not None
    array = back.spec.arrays[0]
    assert type(array) is ArraySpec
    assert type(array.place) is Place and type(array.evidence) is EvidenceKind
    assert array.shape == ("n_steps", 4) and type(array.shape) is tuple
    assert back.spec.vec_env == VecEnvSpec(kind="SubprocVecEnv", wrappers=("VecMonitor",))
    assert back.readings.growth["update"].at(10) == 76
    assert back.readings.workers is not None
    assert back.readings.workers.started_bytes == 25
    assert back.readings.rehearsed[0].moments == {"update": 10}


def test_what_is_written_is_plain() -> None:
    job = Job(kind=TargetKind.SPEC, target="run.toml", scales=({"n_envs": 2},), args=("a", "b"))
    written = to_json(job)
    assert type(written["kind"]) is str and written["kind"] == "spec"
    assert written["scales"] == [{"n_envs": 2}]
    assert written["args"] == ["a", "b"]
    assert written["look"] == "survey"


def test_none_stays_none() -> None:
    back = there_and_back(Answer(status=Status.DIED))
    assert back.spec is None and back.readings is None and back.exit_code is None


def test_a_missing_field_has_its_default() -> None:
    job = from_json(Job, {"kind": "script", "target": "train.py"})
    assert job == Job(kind=TargetKind.SCRIPT, target="train.py")
    assert job.look is Look.SURVEY and job.args == ()


def test_a_field_that_must_be_given_and_is_missing_is_refused() -> None:
    with pytest.raises(TypeError, match="target"):
        from_json(Job, {"kind": "script"})


@pytest.mark.parametrize(
    "data",
    [
        {"kind": "script", "target": "train.py", "colour": "red"},
        {"kind": "script", "target": "train.py", "": 1},
    ],
)
def test_an_unknown_field_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(KeyError):
        from_json(Job, data)


def test_an_unknown_field_within_a_field_is_refused() -> None:
    written = to_json(full_answer())
    written["readings"]["workers"]["colour"] = "red"
    with pytest.raises(KeyError, match="colour"):
        from_json(Answer, written)


def test_an_unknown_value_of_an_enum_is_refused() -> None:
    with pytest.raises(ValueError, match="cassette"):
        from_json(Job, {"kind": "cassette", "target": "train.py"})


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A noun with a tuple of two kinds, and a list."""

    both: tuple[int, Status]
    slopes: list[Slope]


def test_tuples_of_several_kinds_and_lists() -> None:
    pair = Pair(both=(3, Status.DIED), slopes=[Slope(fixed=1, per_unit=2)])
    back = from_json(Pair, json.loads(json.dumps(to_json(pair))))
    assert back == pair and type(back.both[1]) is Status
    with pytest.raises(ValueError, match="zip"):
        from_json(Pair, {"both": [3], "slopes": []})


@dataclass(frozen=True, kw_only=True)
class Told:
    """A noun with a value of each plain kind."""

    text: str = ""
    whole: int = 0
    share: float = 0.0
    sure: bool = False
    perhaps: int | None = None
    several: tuple[int, ...] = ()
    named: Mapping[str, int] = field(default_factory=dict)
    inner: Pair | None = None


def test_foreign_data_may_have_more_fields_and_only_values_of_their_kinds() -> None:
    data = {"text": "a", "whole": 1, "share": 2, "sure": True, "perhaps": None, "colour": "red"}
    told = from_json(Told, {**data, "several": [1], "named": {"a": 2}}, foreign=True)
    assert told == Told(text="a", whole=1, share=2, sure=True, several=(1,), named={"a": 2})


WRONG: dict[str, tuple[object, ...]] = {
    "text": (None, 1, [], {}),
    "whole": (None, True, 1.0, "1", [1]),
    "share": (None, True, "1", float("nan"), float("inf")),
    "sure": (None, 1, "yes"),
    "perhaps": (True, 1.5, "1"),
    "several": (None, 1, "12", {"a": 1}, [None], [[1]]),
    "named": (None, 1, [1], {"a": None}, {"a": "b"}),
    "inner": (1, [], {"both": [1, "no such"], "slopes": []}),
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, odd in WRONG.items() for v in odd])
def test_foreign_data_of_another_kind_are_refused_with_their_place(
    name: str, value: object
) -> None:
    with pytest.raises(ValueError, match=f"^{name}: "):
        from_json(Told, {name: value}, foreign=True)


def test_foreign_data_that_are_no_noun_are_refused() -> None:
    for data in (None, 1, "x", [], [["text", "a"]]):
        with pytest.raises(ValueError, match="no dict"):
            from_json(Told, data, foreign=True)
    with pytest.raises(TypeError, match="slopes"):
        from_json(Pair, {"both": [1, "died"]}, foreign=True)
