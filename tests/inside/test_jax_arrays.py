"""Arrays of JAX are told as those of numpy are."""

from __future__ import annotations

from typing import Any

import pytest

from memfit.inside.array_blocks import ArrayBlocks
from memfit.inside.object_kinds import Kinds
from memfit.inside.paths import Tree
from memfit.inside.seen_addresses import SeenAddresses


def test_a_block_of_its_own_and_none_of_what_was_given_away() -> None:
    jax = pytest.importorskip("jax")
    found = jax.block_until_ready(jax.numpy.ones((512, 256)))
    gone = jax.block_until_ready(jax.numpy.ones((512, 128)))
    gone.delete()
    blocks = told(found, gone)
    assert [(b.library, b.nbytes, b.shape, b.dtype) for b in blocks] == [
        ("jax", 512 * 256 * 4, (512, 256), "float32")
    ]
    assert blocks[0].start == found.unsafe_buffer_pointer()


def told(*arrays: Any) -> list[Any]:
    kinds, tree = Kinds(), Tree()
    blocks = ArrayBlocks(kinds, tree)
    for array in arrays:
        assert kinds[type(array)].form == "jax"
        blocks.data("jax", array, tree.top("state"), SeenAddresses())
    return blocks.settle()
