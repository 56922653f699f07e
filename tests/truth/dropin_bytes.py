"""Bytes of drop-ins that no plan has rows for, as their pages state them, over a run's knobs."""

from __future__ import annotations

from memfit.formulas.dropin_arrays import SLOTS
from memfit.model import Size, const, knob, maximum, minimum
from memfit.model.size import ceil_div


def micro_batch_gathered(*, observation_bytes: int, action_numbers: int) -> Size:
    """The tensors of one micro-batch, and what is known of its whole minibatch and rollout.

    A sample has its observation, its action as float32, and four numbers; the minibatch has its
    advantages, normalised; the rollout has an order of int64.
    """
    batch = minimum(knob("batch_size"), knob("n_steps") * knob("n_envs"))
    sample = observation_bytes + 4 * action_numbers + 4 * 4
    rollout = knob("n_steps") * knob("n_envs") * 8
    return minimum(knob("micro_batch_size"), batch) * sample + batch * 4 + rollout


def micro_batch_update(*, samples: int, asked_bytes: int, gradient_bytes: int) -> Size:
    """What torch asks for at most in an update, from one of fewer samples that was measured.

    The most of several moments, each a fixed part, with all gradients in it, and a part for each
    sample: beside the gradients, what a sample takes can only fall.
    """
    at_once = minimum(knob("micro_batch_size"), knob("batch_size"))
    more = maximum(at_once, samples) * (asked_bytes - gradient_bytes)
    return ceil_div(more, samples) + gradient_bytes


def frame_strip(*, frame_bytes: int) -> Size:
    """The strip that a StackFrames writes; an observation is a view of it."""
    return knob("rows") * frame_bytes


def held_stacks(*, frame_bytes: int, stack_size: int) -> Size:
    """All strips of which something is held, when every observation of an episode is.

    Each strip after the first begins with the stack before it. The wrapper's first strip begins
    with a stack of padding, and the episode with another.
    """
    room = knob("rows") - stack_size
    strips = ceil_div(knob("episode_steps") + stack_size, room)
    return strips * knob("rows") * frame_bytes


def narrowed_rollout(*, numbers: int, itemsize: int) -> Size:
    """A rollout's observations in the dtype that they were narrowed to."""
    return knob("n_steps") * knob("n_envs") * (numbers * itemsize)


# As in the light vector envs and in shared data; truth tests hold both together.
ALIGN = 64
PAGE = 4096
REWARD_BYTES = 8
FLAG_BYTES = 4


def light_vec_env(*arrays: int) -> Size:
    """Shared memory of a light vector env.

    `arrays` are the bytes of each array of one observation. They lie in four slots, array by
    array; a slot that is never needed is never resident.
    """
    envs = knob("n_envs")
    slot = const(0)
    for nbytes in arrays:
        slot = slot + _aligned(envs * nbytes, ALIGN)
    rest = _aligned(envs * REWARD_BYTES, ALIGN) + envs * FLAG_BYTES
    return _aligned(SLOTS * slot + rest, PAGE)


def shared(*arrays: int, structure_pages: int = 1) -> Size:
    """Memory of shared data, once for all processes: its arrays, and a page that describes them.

    The description of very many arrays, or of much beside arrays, takes more pages.
    """
    held = const(0)
    for nbytes in arrays:
        held = held + _aligned(const(nbytes), ALIGN)
    return _aligned(const(structure_pages * PAGE) + held, PAGE)


def _aligned(size: Size, to: int) -> Size:
    return ceil_div(size, to) * to
