"""What can be wrong with a run spec, said so that a person can mend it."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from memfit.model import parse_size

LARGEST_KNOB = 2**40
LARGEST_ARRAY = 2**50
_SHOWN = 5

_FORMS = ("shape", "discrete", "multidiscrete", "multibinary")
_OFF_POLICY = ("DQN", "SAC", "TD3", "DDPG", "QRDQN", "TQC", "CrossQ")
_ON_KNOBS = {"PPO": 3, "MaskablePPO": 3, "RecurrentPPO": 3, "TRPO": 2, "A2C": 1}
_REPLAY_KNOBS = ("buffer_size", "batch_size", "learning_starts", "gradient_steps", "train_freq")


# -- what the schema refuses ---------------------------------------------------------------------


def explain(file: str, error: ValidationError, schema: type[BaseModel]) -> str:
    """One line for each thing that the schema refuses: file, key, what is wrong, what to do."""
    found = error.errors(include_url=False)
    lines = [f"{file}: {_explain_one(one, schema)}" for one in found[:_SHOWN]]
    if len(found) > _SHOWN:
        lines.append(f"{file}: and {len(found) - _SHOWN} more; mend these first")
    return "\n".join(lines)


def _explain_one(error: Mapping[str, Any], schema: type[BaseModel]) -> str:
    loc = [part for part in error["loc"] if part != "" and not _is_branch(part)]
    key, kind, value = _key(loc), error["type"], error.get("input")
    limits = error.get("ctx", {})
    if kind == "extra_forbidden":
        known = sorted(_known_keys(schema, error["loc"][:-1]))
        near = difflib.get_close_matches(str(loc[-1]), known, n=1)
        todo = f"did you mean {near[0]}?" if near else f"use one of {', '.join(known)}"
        return f"{key} is no key of a run spec: {todo}"
    if kind == "missing":
        return f"{key} is missing: add it"
    if kind in ("greater_than_equal", "less_than_equal"):
        word, bound = ("least", limits.get("ge")) if "ge" in limits else ("most", limits.get("le"))
        return f"{key} is {value!r}: it must be at {word} {bound:,}"
    if kind == "literal_error":
        return f"{key} is {value!r}: use {limits.get('expected')}"
    if kind.endswith(("_type", "_parsing")):
        wanted = _WANTED.get(kind, str(error["msg"]).removeprefix("Input should be "))
        return f"{key} is {value!r}: it must be {wanted}"
    if kind == "value_error":
        return f"{key}: {str(error['msg']).removeprefix('Value error, ')}"
    if kind in ("too_short", "too_long"):
        return f"{key} has {limits.get('actual_length')} entries: give {_entries(limits)}"
    return f"{key} is {value!r}: {str(error['msg'])[:1].lower()}{str(error['msg'])[1:]}"


_WANTED = {
    "int_type": "a whole number",
    "float_type": "a number",
    "string_type": "a text in quotes",
    "bool_type": "true or false",
    "list_type": "a list in brackets",
    "dict_type": "a table",
    "model_type": "a table",
}


def _entries(limits: Mapping[str, Any]) -> str:
    if "min_length" in limits:
        return f"at least {limits['min_length']}"
    return f"at most {limits.get('max_length')}"


def _is_branch(part: Any) -> bool:
    """Pydantic names the branch of a union in a location: `list[constrained-int]`, `int`."""
    return isinstance(part, str) and ("[" in part or part in ("int", "str", "float"))


def _key(loc: Sequence[Any]) -> str:
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "the file"


def _known_keys(schema: type[BaseModel], loc: Sequence[Any]) -> set[str]:
    """The keys that may stand where an unknown one was found."""
    here: Any = schema
    for part in loc:
        field = getattr(here, "model_fields", {}).get(part)
        here = _model_in(field.annotation if field is not None else here) or here
    return {field.alias or name for name, field in getattr(here, "model_fields", {}).items()}


def _model_in(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in getattr(annotation, "__args__", ()):
        if (found := _model_in(inner)) is not None:
            return found
    return None


# -- what the schema cannot see ------------------------------------------------------------------


def problems(facts: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with facts that each have the right type."""
    return _torch_problems(facts) if facts["library"] == "torch" else _sb3_problems(facts)


def _sb3_problems(facts: Mapping[str, Any]) -> Iterator[str]:
    algorithm, knobs = facts["algorithm"], facts["knobs"]
    replay = algorithm in _OFF_POLICY
    own = _REPLAY_KNOBS if replay else ("n_steps", "batch_size", "n_epochs")[: _ON_KNOBS[algorithm]]
    for name in ("n_steps", "n_epochs", *_REPLAY_KNOBS):
        if knobs[name] is not None and name not in own:
            yield f"knobs.{name}: {algorithm} has no {name}. Remove it, or use {', '.join(own)}"
    if facts["optimize_memory_usage"] and not replay:
        yield f"optimize_memory_usage: {algorithm} has no replay buffer. Remove it"
    if facts["env"]["start_method"] and facts["env"]["vec"] != "subproc":
        yield 'env.start_method: only vec = "subproc" starts processes. Remove it, or change vec'
    spaces = {
        f"observation.{k}" if k else "observation": v for k, v in facts["observation"].items()
    }
    for where, space in (*spaces.items(), ("action", facts["action"])):
        forms = [name for name in _FORMS if space[name] is not None]
        if len(forms) != 1:
            yield f"{where} has {' and '.join(forms) or 'no form'}: give one of {', '.join(_FORMS)}"
    rows = (knobs["buffer_size"] or 1) if replay else (knobs["n_steps"] or 1) * knobs["n_envs"]
    each = sum(_space_bytes(space) for space in spaces.values())
    if rows * each > LARGEST_ARRAY:
        yield _absurd("the buffer of observations", rows * each)


def _space_bytes(space: Mapping[str, Any]) -> int:
    shape: list[int] = space["shape"] or [1]
    return math.prod(shape) * item_bytes(space["dtype"] or "float32")


def item_bytes(dtype: str) -> int:
    """The bytes of one element: `float32` has 4."""
    digits = "".join(c for c in dtype if c.isdigit())
    return int(digits) // 8 if digits else 1


def _absurd(what: str, amount: int) -> str:
    return f"{what} would have {amount:,} bytes, more than any machine: check its sizes"


def _torch_problems(facts: Mapping[str, Any]) -> Iterator[str]:
    knobs, update = facts["knobs"], facts["update"]
    for name in knobs:
        if not name.isidentifier():
            yield f"knobs.{name}: name it like a variable, such as agents"
            return
    yield from _expression_problems(facts)
    if bool(update["rollout"]) != bool(update["steps"]):
        yield "update.rollout and update.steps belong together: give both, or neither"
    if update["rollout_records_gradients"] and not update["rollout"]:
        yield "update.rollout_records_gradients: say how large the rollout is (rollout and steps)"
    if update["keeps_last_graph"] and not update["rollout_records_gradients"]:
        yield "update.keeps_last_graph: only a rollout that records gradients has a graph to keep"
    yield from _network_problems(facts["network"])


def _expression_problems(facts: Mapping[str, Any]) -> Iterator[str]:
    """Every expression must be one, and come to at least 1 with the knobs as they are."""
    knobs = facts["knobs"]
    amounts: dict[str, int] = {}
    for where, text in _expressions(facts):
        try:
            amounts[where] = parse_size(text, knobs).evaluate(knobs)
        except (ValueError, ZeroDivisionError) as error:
            yield f"{where}: {error}"
            return
        if not 1 <= amounts[where] <= LARGEST_ARRAY:
            yield f"{where} comes to {amounts[where]:,} with these knobs: it must be at least 1"
            return
    for i, array in enumerate(facts["array"]):
        shape = [amounts[f"array[{i}].shape[{n}]"] for n in range(len(array["shape"]))]
        amount = math.prod(shape) * item_bytes(array["dtype"])
        if amount > LARGEST_ARRAY:
            yield _absurd(f"array[{i}] ({array['name']})", amount)
    for i, network in enumerate(facts["network"]):
        shape = [amounts[f"network[{i}].input[{n}]"] for n in range(len(network["input"]))]
        amount = math.prod(shape) * item_bytes(network["dtype"]) * amounts["update.batch"]
        if network["input"] and amount > LARGEST_ARRAY:
            yield _absurd(f"network[{i}].input ({network['name']}), for the whole batch,", amount)


def _expressions(facts: Mapping[str, Any]) -> Iterator[tuple[str, int | str]]:
    for name in ("batch", "minibatch", "rollout", "steps"):
        if facts["update"][name] != "" or name == "batch":
            yield f"update.{name}", facts["update"][name]
    for i, array in enumerate(facts["array"]):
        yield from ((f"array[{i}].shape[{n}]", text) for n, text in enumerate(array["shape"]))
        yield f"array[{i}].pieces", array["pieces"]
        if array["filled"] is not None:
            yield f"array[{i}].filled", array["filled"]
    for i, network in enumerate(facts["network"]):
        yield from ((f"network[{i}].input[{n}]", text) for n, text in enumerate(network["input"]))


def _network_problems(networks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    seen: dict[str, Mapping[str, Any]] = {}
    for i, network in enumerate(networks):
        where = f"network[{i}] ({network['name']})"
        if network["name"] in seen:
            yield f"{where}: that name is taken. Give each network its own"
        if bool(network["layers"]) == bool(network["factory"]):
            yield f"{where}: give either layers or factory"
        if network["after"] and network["after"] not in seen:
            yield f"{where}: after names {network['after']!r}, which is no network above it"
        if not network["after"] and not network["input"]:
            yield f"{where}: give its input, the shape of one sample, or name a network after it"
        if network["target"] and not seen.get(network["target"], {}).get("input"):
            yield f"{where}: target names {network['target']!r}, which is no network with an input"
        seen[network["name"]] = network
