"""What a comparison says first: grown, shrunk, or the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memfit.render import Text, Tone, compare_blocks
from memfit.units import MIB
from tests.samples_compared import comparison


@pytest.mark.parametrize(
    ("after", "says", "tone"),
    [
        (1100, "today.db grew by 100 MiB (+10.0%) against yesterday.db", Tone.BAD),
        (900, "today.db shrank by 100 MiB (-10.0%) against yesterday.db", Tone.GOOD),
        (1000, "today.db needs as much as yesterday.db: 1000 MiB", Tone.GOOD),
    ],
)
def test_the_first_line_says_how_the_total_changed(after: int, says: str, tone: Tone) -> None:
    first = compare_blocks(replace(comparison(), after_bytes=after * MIB))[0]
    assert isinstance(first, Text)
    assert first.text.startswith(says)
    assert first.tone is tone
