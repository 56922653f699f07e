"""Python's pools are recognised by what their headers say."""

from __future__ import annotations

import os
import struct
import sys

from hypothesis import given
from hypothesis import strategies as st

from memfit.measure.kernel.mappings import mappings
from memfit.measure.kernel.process_memory import ProcessMemory
from memfit.measure.live.pymalloc import POOL, _in_use, pools


@given(st.binary(min_size=48, max_size=48))
def test_random_bytes_are_no_pool(data: bytes) -> None:
    last, size_class = struct.unpack_from("<I", data, 44)[0], struct.unpack_from("<I", data, 36)[0]
    if last != POOL - (size_class + 1) * 16:
        assert _in_use(data, 0) == 0


def test_own_objects_are_found_from_outside() -> None:
    kept = [object() for _ in range(50_000)]  # 16 bytes each
    pid, used, total = os.getpid(), 0, 0
    with ProcessMemory(pid) as memory:
        for mapping in mappings(pid):
            if mapping.nameless and mapping.writable:
                spans, in_use = pools(mapping, memory)
                used += in_use
                total += sum(b - a for a, b in spans)
    assert total >= used >= len(kept) * 16
    # The interpreter counts its blocks of all sizes, small and large.
    assert used >= 0.5 * 16 * sys.getallocatedblocks()
