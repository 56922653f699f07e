"""Settings as torch reads them."""

from __future__ import annotations

import pytest

from memfit.device.allocator_settings import AllocatorSettings, parse_settings, recorded_settings
from memfit.errors import UsageError
from memfit.units import GIB, MIB


@pytest.mark.parametrize(
    ("size", "rounded"), [(1, 512), (512, 512), (513, 1024), (MIB, MIB), (MIB + 1, MIB + 512)]
)
def test_requests_are_rounded_up_to_512_bytes(size: int, rounded: int) -> None:
    assert AllocatorSettings().rounded(size) == rounded


def test_the_example_of_torchs_documentation_for_divisions() -> None:
    """1200 with 4 divisions lies between 1024 and 2048: 1024, 1280, 1536, 1792."""
    settings = parse_settings("roundup_power2_divisions:4")
    assert settings.rounded(1200) == 1536  # up to 512 * 4 sizes are multiples of 512
    assert settings.rounded(1200 * 1024) == 1280 * 1024
    assert settings.rounded(1024 * 1024) == 1024 * 1024


def test_divisions_by_size() -> None:
    settings = parse_settings("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]")
    assert settings.rounded(300 * MIB) == 300 * MIB
    assert settings.rounded(513 * MIB) == 768 * MIB
    assert settings.rounded(1100 * MIB) == 1280 * MIB
    assert settings.rounded(33 * GIB) == 36 * GIB


@pytest.mark.parametrize(
    ("size", "segment"),
    [
        (512, 2 * MIB),
        (MIB, 2 * MIB),
        (MIB + 512, 20 * MIB),
        (10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (21 * MIB, 22 * MIB),
    ],
)
def test_sizes_of_segments(size: int, segment: int) -> None:
    assert AllocatorSettings().segment_size(size) == segment


def test_settings_are_read_as_users_write_them() -> None:
    settings = parse_settings(
        "max_split_size_mb:128, garbage_collection_threshold:0.8,expandable_segments:True,"
        "backend:native,pinned_use_background_threads:True"
    )
    assert settings.max_split_size == 128 * MIB
    assert settings.garbage_collection_threshold == 0.8
    assert settings.expandable_segments
    assert parse_settings("") == AllocatorSettings()


@pytest.mark.parametrize(
    "text",
    [
        "max_split_size_mb:1",
        "max_split_size_mb:many",
        "garbage_collection_threshold:1.5",
        "expandable_segments:yes",
        "roundup_power2_divisions:3",
        "roundup_power2_divisions:[256:1,512]",
        "of_nobody:1",
        "max_split_size_mb",
    ],
)
def test_what_torch_refuses_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="the allocator's setting"):
        parse_settings(text)


def test_settings_of_a_snapshot() -> None:
    divisions = {str(1 << n): 0 for n in range(16)} | {"512": 2}
    found = {
        "max_split_size": 128 * MIB,
        "garbage_collection_threshold": 0.5,
        "expandable_segments": True,
        "roundup_power2_divisions": divisions,
    }
    settings = recorded_settings(found)
    assert settings.max_split_size == 128 * MIB
    assert settings.rounded(513 * MIB) == 768 * MIB
    assert settings.garbage_collection_threshold == 0.5
    assert settings.expandable_segments
    assert recorded_settings({"max_split_size": -1, "roundup_power2_divisions": 3}).splits_all
