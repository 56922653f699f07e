"""What can be wrong with a run spec, said so that a person can fix it."""

from __future__ import annotations

import difflib
import keyword
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from memfit.model import parse_size
from memfit.model.phase import PHASES

LARGEST_KNOB = 2**40
LARGEST_ARRAY = 2**50
# What texts must look like; `_ADVICE` says it in words.
NAME = r"^[A-Za-z][\w.]*$"
WORD = r"^\w+$"
MODULE = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$"
FACTORY = r"^$|^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$"
# The branches of a union, which stand in the location of an error.
LIST, TABLE = "<list>", "<table>"

_SHOWN = 5
_WIDEST = 60
_ADVICE = {
    NAME: "use letters, digits, _ and ., a letter first",
    WORD: "use one word, such as Adam or MSELoss",
    MODULE: "name a module, such as pandas or torch.distributed",
    FACTORY: "write package.module:function",
}
_FORMS = ("shape", "discrete", "multidiscrete", "multibinary")
_BOX_ONLY = ("dtype", "low", "high")
_REPLAY_KNOBS = ("buffer_size", "batch_size", "learning_starts", "gradient_steps", "train_freq")
_OFF_POLICY = ("DQN", "SAC", "TD3", "DDPG", "QRDQN", "TQC", "CrossQ")
_ON_KNOBS = {"PPO": 3, "MaskablePPO": 3, "RecurrentPPO": 3, "TRPO": 2, "A2C": 1}


def shown(value: Any) -> str:
    """A value of the file, cut where it is too long for a message."""
    text = repr(value)
    return text if len(text) <= _WIDEST else f"{text[:_WIDEST]}..."


def own_knobs(algorithm: str) -> Sequence[str]:
    """The knobs that an algorithm has beside `n_envs` and `total_timesteps`."""
    if algorithm in _OFF_POLICY:
        return _REPLAY_KNOBS
    return ("n_steps", "batch_size", "n_epochs")[: _ON_KNOBS[algorithm]]


# -- what the schema refuses ---------------------------------------------------------------------


def explain(file: str, error: ValidationError, schema: type[BaseModel]) -> str:
    """One line for each thing that the schema refuses: file, key, what is wrong, what to do."""
    found = error.errors(include_url=False)
    lines = [f"{file}: {_explain_one(one, schema)}" for one in found[:_SHOWN]]
    if len(found) > _SHOWN:
        lines.append(f"{file}: and {len(found) - _SHOWN} more; fix these first")
    return "\n".join(lines)


def _explain_one(error: Mapping[str, Any], schema: type[BaseModel]) -> str:
    loc = [part for part in error["loc"] if part not in ("", LIST, TABLE)]
    key, kind, value = _key(loc), error["type"], shown(error.get("input"))
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
        return f"{key} is {value}: it must be at {word} {bound:,}"
    if kind == "literal_error":
        return f"{key} is {value}: use {limits.get('expected')}"
    if kind == "string_pattern_mismatch":
        return f"{key} is {value}: {_ADVICE[limits['pattern']]}"
    if kind == "list_type" and isinstance(error["input"], dict) and _holds_tables(schema, key):
        return f"{key} is one table: write [[{key}]], with double brackets, for each"
    if kind in _WANTED or kind.endswith(("_type", "_parsing")):
        wanted = _WANTED.get(kind, str(error["msg"]).removeprefix("Input should be "))
        return f"{key} is {value}: it must be {wanted}"
    if kind == "value_error":
        return f"{key}: {str(error['msg']).removeprefix('Value error, ')}"
    if kind in ("too_short", "too_long"):
        word, bound = ("least", "min_length") if kind == "too_short" else ("most", "max_length")
        return f"{key} has {limits['actual_length']} entries: give at {word} {limits[bound]}"
    return f"{key} is {value}: {str(error['msg'])[:1].lower()}{str(error['msg'])[1:]}"


_WANTED = {
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "a text in quotes",
    "bool_type": "true or false",
    "list_type": "a list in brackets",
    "dict_type": "a table",
    "model_type": "a table",
}


def _key(loc: Sequence[Any]) -> str:
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "the file"


def _holds_tables(schema: type[BaseModel], key: str) -> bool:
    field = schema.model_fields.get(key)
    return field is not None and _model_in(field.annotation) is not None


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


def sb3_problems(facts: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with facts of a stable-baselines3 run that each have the right type."""
    algorithm, knobs = facts["algorithm"], facts["knobs"]
    replay, own = algorithm in _OFF_POLICY, own_knobs(algorithm)
    for name in ("n_steps", "n_epochs", *_REPLAY_KNOBS):
        if knobs[name] is not None and name not in own:
            yield f"knobs.{name}: {algorithm} has no {name}. Remove it, or use {', '.join(own)}"
    if knobs["gradient_steps"] == 0:
        yield "knobs.gradient_steps is 0: give at least 1, or -1 for as many as environment steps"
    if facts["rollout_buffer_class"] and replay:
        yield f"rollout_buffer_class: {algorithm} has no rollout. Remove it"
    if facts["optimize_memory_usage"] and not replay:
        yield f"optimize_memory_usage: {algorithm} has no replay buffer. Remove it"
    if facts["env"]["start_method"] and facts["env"]["vec"] != "subproc":
        yield 'env.start_method: only vec = "subproc" starts processes. Remove it, or change vec'
    for i, callback in enumerate(facts["callback"]):
        foreign = "save_best" if callback["kind"] == "save" else "save_replay_buffer"
        if callback[foreign]:
            yield (
                f'callback[{i}].{foreign}: kind = "{callback["kind"]}" does not do that. '
                "Remove it, or change kind"
            )
    spaces = {
        f"observation.{k}" if k else "observation": v for k, v in facts["observation"].items()
    }
    for where, space in (*spaces.items(), ("action", facts["action"])):
        yield from _space_problems(where, space)
    rows = (knobs["buffer_size"] or 1) if replay else (knobs["n_steps"] or 1) * knobs["n_envs"]
    each = sum(_space_bytes(space) for space in spaces.values())
    if rows * each > LARGEST_ARRAY:
        yield _absurd("the buffer of observations", rows * each)


def _space_problems(where: str, space: Mapping[str, Any]) -> Iterator[str]:
    forms = [name for name in _FORMS if space[name] is not None]
    if len(forms) != 1:
        yield f"{where} has {' and '.join(forms) or 'no form'}: give one of {', '.join(_FORMS)}"
        return
    for name in _BOX_ONLY:
        if space[name] is not None and forms != ["shape"]:
            yield f"{where}.{name} means nothing beside {forms[0]}. Remove it, or give a shape"
    if None not in (space["low"], space["high"]) and space["low"] > space["high"]:
        yield f"{where}.low is {space['low']:g}, above high: exchange them"


def _space_bytes(space: Mapping[str, Any]) -> int:
    shape: list[int] = space["shape"] or [1]
    return math.prod(shape) * item_bytes(space["dtype"] or "float32")


def item_bytes(dtype: str) -> int:
    """The bytes of one element: `float32` has 4."""
    digits = "".join(c for c in dtype if c.isdigit())
    return int(digits) // 8 if digits else 1


def _absurd(what: str, amount: int) -> str:
    return f"{what} would have {amount:,} bytes, more than any machine: check its sizes"


def torch_problems(facts: Mapping[str, Any]) -> Iterator[str]:
    """The same of a plain torch run."""
    knobs, update = facts["knobs"], facts["update"]
    for name in knobs:
        if not name.isidentifier() or keyword.iskeyword(name):
            yield f"knobs.{name}: name it like a variable, such as agents"
            return
    yield from _expression_problems(facts)
    if bool(update["rollout"]) != bool(update["steps"]):
        yield "update.rollout and update.steps belong together: give both, or neither"
    if update["rollout_records_gradients"] and not update["rollout"]:
        yield "update.rollout_records_gradients: say how large the rollout is (rollout and steps)"
    if update["keeps_last_graph"] and not update["rollout_records_gradients"]:
        yield (
            "update.keeps_last_graph: only a rollout that records gradients has a graph to keep. "
            "Remove it, or set rollout_records_gradients"
        )
    yield from _array_problems(facts["array"])
    yield from _network_problems(facts)


def _expression_problems(facts: Mapping[str, Any]) -> Iterator[str]:
    """Every expression must be one, and come to at least 1 with the knobs as they are."""
    knobs = facts["knobs"]
    amounts: dict[str, int] = {}
    for where, text in _expressions(facts):
        try:
            amount = amounts[where] = parse_size(text, knobs).evaluate(knobs)
        except ValueError as error:
            yield f"{where}: {error}"
            return
        except ZeroDivisionError:
            yield f"{where}: {text!r} divides by zero with these knobs: change it, or a knob"
            return
        if not 1 <= amount <= LARGEST_ARRAY:
            bound = "least 1" if amount < 1 else f"most {LARGEST_ARRAY:,}"
            yield f"{where} comes to {amount:,} with these knobs: it must be at {bound}"
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


def _array_problems(arrays: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    names = [array["name"] for array in arrays]
    for i, array in enumerate(arrays):
        where = f"array[{i}] ({array['name']})"
        if array["name"] in names[:i]:
            yield f"{where}: that name is taken. Give each array its own"
        if array["evidence"] != "assumed" and not array["where"]:
            yield (
                f"{where}: evidence {array['evidence']!r} says nothing of itself. Say in `where` "
                "what it comes from, or leave `evidence` out"
            )
        in_order = sorted(set(array["phases"]), key=PHASES.index)
        if array["phases"] != in_order:
            yield f"{where}: phases come once each and in their order. Write {in_order}"


def _network_problems(facts: Mapping[str, Any]) -> Iterator[str]:
    seen: dict[str, Mapping[str, Any]] = {}
    chains: dict[str, str] = {}  # of each network, the first in its chain
    for i, network in enumerate(facts["network"]):
        name, after = network["name"], network["after"]
        where = f"network[{i}] ({name})"
        chains[name] = chains.get(after, name)
        if name in seen:
            yield f"{where}: that name is taken. Give each network its own"
        if bool(network["layers"]) == bool(network["factory"]):
            yield f"{where}: give either layers or factory"
        if after and after not in seen:
            yield f"{where}: after names {after!r}, which is no network above it. Name one that is"
        if not after and not network["input"]:
            yield f"{where}: give input, the shape of one sample, or after, the network before it"
        idle = bool(facts["update"]["rollout"]) and seen.get(after, {}).get("rollout") == "none"
        if idle and network["rollout"] != "none":
            yield f'{where}: a rollout does not call {after!r}. Write rollout = "none" here too'
        if network["target"]:
            yield from _target_problems(where, network, seen, chains, facts["update"]["joint_loss"])
        seen[name] = network


def _target_problems(
    where: str,
    network: Mapping[str, Any],
    above: Mapping[str, Mapping[str, Any]],
    chains: Mapping[str, str],
    joint: bool,
) -> Iterator[str]:
    told = f"{where}: target names {network['target']!r}, which is"
    if not above.get(network["target"], {}).get("input"):
        yield f"{told} no network above it with an input. Name one, or remove target"
    elif chains[network["target"]] != chains[network["name"]] and not joint:
        yield f"{told} in another chain. Name one of its own chain, or set update.joint_loss"
    elif network["loss"] == "sum":
        yield f'{where}: loss = "sum" has no target. Remove target, or name a loss of torch.nn'
