"""Settings of the caching allocator, as `PYTORCH_CUDA_ALLOC_CONF` and snapshots state them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from memfit.errors import UsageError
from memfit.units import MIB

SMALLEST = 512  # all sizes are rounded up to a multiple of this
LARGEST_SMALL = MIB  # up to this, a request goes to the small pool
SMALL_SEGMENT = 2 * MIB
LARGE_SEGMENT = 20 * MIB  # of requests below LEAST_OWN
LEAST_OWN = 10 * MIB  # from here on a new segment is made for one request
ROUND_LARGE = 2 * MIB

_INTERVALS = 16  # of roundup_power2_divisions: from 1 MiB, each twice the one before
_UNLIMITED = 2**63 - 1
# Of what else may be set, nothing changes how memory of the card is divided.
_OTHER = frozenset(
    {
        "backend",
        "graph_capture_record_stream_reuse",
        "per_process_memory_fraction",
        "pinned_max_cached_size_mb",
        "pinned_max_round_threshold_mb",
        "pinned_num_register_threads",
        "pinned_reserve_segment_size_mb",
        "pinned_use_background_threads",
        "pinned_use_cuda_host_register",
        "release_lock_on_cudamalloc",
        "release_lock_on_hipmalloc",
        "throw_on_cudamalloc_oom",
    }
)


@dataclass(frozen=True, kw_only=True)
class AllocatorSettings:
    """What users may set; the defaults are torch's."""

    max_split_size: int = _UNLIMITED
    max_non_split_rounding: int = LARGE_SEGMENT
    garbage_collection_threshold: float = 0.0
    roundup_power2_divisions: tuple[int, ...] = (0,) * _INTERVALS
    expandable_segments: bool = False
    large_segment_size: int = LARGE_SEGMENT

    @property
    def splits_all(self) -> bool:
        """Whether blocks of every size may be split, as they are by default."""
        return self.max_split_size == _UNLIMITED

    def rounded(self, size: int) -> int:
        """The size of a block for so many bytes."""
        if size < SMALLEST:
            return SMALLEST
        interval = min(max(size.bit_length() - 1 - 20, 0), _INTERVALS - 1)
        divisions = self.roundup_power2_divisions[interval]
        if divisions > 1 and size > SMALLEST * divisions:
            return _next_division(size, divisions)
        return -(-size // SMALLEST) * SMALLEST

    def segment_size(self, size: int) -> int:
        """What is asked of the driver for a block of this (rounded) size."""
        if size <= LARGEST_SMALL:
            return SMALL_SEGMENT
        if size < LEAST_OWN:
            return self.large_segment_size
        return -(-size // ROUND_LARGE) * ROUND_LARGE

    def page_size(self, *, small: bool) -> int:
        """What an expandable segment grows by."""
        return SMALL_SEGMENT if small else self.large_segment_size

    def splits(self, size: int, rest: int, *, small: bool) -> bool:
        """Whether a block is split when a request of `size` would leave `rest` of it."""
        if small or self.expandable_segments:
            return rest >= SMALLEST
        return size < self.max_split_size and rest > LARGEST_SMALL


def _next_division(size: int, divisions: int) -> int:
    floor = 1 << (size.bit_length() - 1)
    if size <= 4 or size == floor:
        return size
    step = floor >> (divisions.bit_length() - 1)
    if not step:
        return floor << 1
    return -(-size // step) * step


def parse_settings(text: str) -> AllocatorSettings:
    """Settings from text such as `max_split_size_mb:128,expandable_segments:True`."""
    settings = AllocatorSettings()
    for name, value in _pairs(text):
        try:
            settings = _with(settings, name, value)
        except ValueError:
            raise UsageError(
                f"the allocator's setting {name}:{value} is none: see PYTORCH_CUDA_ALLOC_CONF in "
                "the documentation of torch"
            ) from None
    return settings


def _pairs(text: str) -> list[tuple[str, str]]:
    """Names and values; what is in brackets belongs together."""
    found, depth, part = [], 0, ""
    for character in f"{text},":
        depth += {"[": 1, "]": -1}.get(character, 0)
        if character != "," or depth > 0:
            part += character
            continue
        name, colon, value = part.partition(":")
        if name.strip():
            if not colon:
                raise UsageError(f"the allocator's setting {part!r} has no value: write name:value")
            found.append((name.strip(), "".join(value.split())))
        part = ""
    return found


def _with(settings: AllocatorSettings, name: str, value: str) -> AllocatorSettings:
    if name == "max_split_size_mb":
        return replace(settings, max_split_size=_above(int(value), settings.large_segment_size))
    if name == "max_non_split_rounding_mb":
        rounding = _above(int(value), settings.large_segment_size)
        return replace(settings, max_non_split_rounding=rounding)
    if name == "garbage_collection_threshold":
        threshold = float(value)
        if not 0 < threshold < 1:
            raise ValueError(value)
        return replace(settings, garbage_collection_threshold=threshold)
    if name == "roundup_power2_divisions":
        return replace(settings, roundup_power2_divisions=_divisions(value))
    if name == "expandable_segments":
        return replace(settings, expandable_segments=_truth(value))
    if name == "large_segment_size_mb":
        return replace(settings, large_segment_size=_above(int(value), LARGE_SEGMENT))
    if name not in _OTHER:
        raise ValueError(name)
    return settings


def _above(mebibytes: int, least: int) -> int:
    """Sizes in MiB; torch refuses those below its large segments."""
    if mebibytes * MIB < least:
        raise ValueError(mebibytes)
    return mebibytes * MIB


def _truth(value: str) -> bool:
    if value not in ("True", "False"):
        raise ValueError(value)
    return value == "True"


def _divisions(value: str) -> tuple[int, ...]:
    """One number for all sizes, or a list such as `[256:1,512:2,>:8]` with sizes in MiB."""
    if not value.startswith("["):
        return (_power(int(value)),) * _INTERVALS
    found = [0] * _INTERVALS
    last = 0
    for part in value.strip("[]").split(","):
        size, _, divisions = part.partition(":")
        number = _power(int(divisions))
        if size == ">":
            found[last:] = [number] * (_INTERVALS - last)
            break
        interval = min(_power(int(size)).bit_length() - 1, _INTERVALS - 1)
        # The first entry is for all that is smaller too.
        first = 0 if not last else interval
        found[first : interval + 1] = [number] * (interval + 1 - first)
        last = interval + 1
    return tuple(found)


def _power(number: int) -> int:
    if number < 1 or number & (number - 1):
        raise ValueError(number)
    return number


def recorded_settings(found: Mapping[str, object]) -> AllocatorSettings:
    """What a snapshot says of the settings; what it does not say is as torch has it."""
    split = found.get("max_split_size")
    threshold = found.get("garbage_collection_threshold")
    divisions = found.get("roundup_power2_divisions")
    settings = AllocatorSettings(expandable_segments=found.get("expandable_segments") is True)
    if isinstance(split, int) and 0 < split < _UNLIMITED:
        settings = replace(settings, max_split_size=split)
    if isinstance(threshold, float) and 0 < threshold < 1:
        settings = replace(settings, garbage_collection_threshold=threshold)
    if isinstance(divisions, Mapping) and len(divisions) == _INTERVALS:
        # From the smallest interval on, by their sizes in MiB.
        numbers = [divisions.get(str(1 << n)) for n in range(_INTERVALS)]
        if all(isinstance(n, int) and n >= 0 for n in numbers):
            chosen = tuple(n for n in numbers if isinstance(n, int))
            settings = replace(settings, roundup_power2_divisions=chosen)
    return settings
