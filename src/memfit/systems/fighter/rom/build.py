"""`python -m memfit.systems.fighter.rom.build`: make the cartridge from its source."""

from __future__ import annotations

import sys
from pathlib import Path

from memfit.errors import UsageError
from memfit.systems.fighter.rom.assembler import Assembler, Program
from memfit.systems.fighter.rom.pictures import LETTERS, tiles

HERE = Path(__file__).parent
CARTRIDGE = HERE / "fighter.gb"
SIZE = 32 << 10
TITLE = b"FIGHTER"
FILES = ("memory", "main", "fight", "screen")

HEADER = slice(0x134, 0x14D)  # what the header's own checksum covers
HEADER_CHECKSUM = 0x14D
CHECKSUM = slice(0x14E, 0x150)


def assemble() -> Program:
    """The program, without its checksums."""
    blobs = {"title": TITLE.ljust(16, b"\0"), "tiles": tiles()}
    source = {
        f"{name}.asm": (HERE / "source" / f"{name}.asm").read_text(encoding="utf-8")
        for name in FILES
    }
    return Assembler(size=SIZE, letters=LETTERS, blobs=blobs).assemble(source)


def build() -> bytes:
    """The cartridge."""
    image = bytearray(assemble().image)
    image[HEADER_CHECKSUM] = header_checksum(image)
    image[CHECKSUM] = checksum(image).to_bytes(2, "big")
    return bytes(image)


def header_checksum(image: bytes | bytearray) -> int:
    """What the machine compares before it starts a cartridge."""
    return -sum(byte + 1 for byte in image[HEADER]) & 0xFF


def checksum(image: bytes | bytearray) -> int:
    """The sum of all bytes but these two; no machine looks at it."""
    return (sum(image) - sum(image[CHECKSUM])) & 0xFFFF


def main() -> int:
    """Write the cartridge."""
    try:
        CARTRIDGE.write_bytes(build())
    except (UsageError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    sys.stdout.write(f"{CARTRIDGE.name}: {assemble().end:,} of {SIZE:,} bytes used\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
