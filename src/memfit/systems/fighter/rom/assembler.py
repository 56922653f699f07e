"""A small assembler: text in the processor's own words becomes bytes.

    NAME = 3 + 4            a number with a name
    label:                  the address here; `.label:` belongs to the last label without a dot
        org $150            go on at this address
        ld a, [hl+]         an instruction
        db 1, NAME          bytes; dw 1, label: words, low byte first
        ds 16               zeros
        text "ROUND"        tiles of letters
        blob tiles          bytes that the build puts in under this name
    ; the rest of a line is a comment

Numbers are written 10, $0A or %1010, joined by + - * // & | << >> and brackets; low(x) and
high(x) are the two bytes of a word.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from memfit.errors import UsageError
from memfit.systems.fighter.rom.opcodes import BITS, REGISTERS, RESERVED, TABLE, Instruction

_FUNCTIONS: dict[str, Callable[[int], int]] = {
    "low": lambda word: word & 0xFF,
    "high": lambda word: word >> 8,
}
_LABEL = re.compile(r"(\.?[A-Za-z_]\w*):\s*(.*)")
_CONSTANT = re.compile(r"([A-Za-z_]\w*)\s*=\s*(.+)")


@dataclass(frozen=True, kw_only=True)
class Program:
    """Bytes at their addresses, and what the names of the source stand for."""

    image: bytes
    symbols: Mapping[str, int]
    end: int  # the first address that nothing was put at


@dataclass(kw_only=True)
class _Line:
    """One statement, with the address that it is put at."""

    place: str
    words: str
    operands: list[str]
    scope: str
    address: int = 0
    size: int = 0


@dataclass(kw_only=True)
class Assembler:
    """Assembles files of source into an image of a fixed size."""

    size: int
    letters: Mapping[str, int] = field(default_factory=dict)
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    symbols: dict[str, int] = field(default_factory=dict)

    def assemble(self, files: Mapping[str, str]) -> Program:
        """First all addresses, then all bytes."""
        lines = self._addresses(files)
        image = bytearray(self.size)
        used = bytearray(self.size)
        end = 0
        for line in lines:
            code = self._bytes(line)
            if line.address + len(code) > self.size:
                raise _wrong(line, f"is put at ${line.address:04X}, beyond the cartridge's end")
            where = slice(line.address, line.address + len(code))
            if any(used[where]):
                raise _wrong(line, f"is put at ${line.address:04X}, where something is already")
            used[where] = b"\1" * len(code)
            image[where] = code
            end = max(end, where.stop)
        return Program(image=bytes(image), symbols=dict(self.symbols), end=end)

    def _addresses(self, files: Mapping[str, str]) -> list[_Line]:
        lines: list[_Line] = []
        address, scope = 0, ""
        for name, text in files.items():
            for number, raw in enumerate(text.splitlines(), 1):
                place = f"{name}:{number}"
                rest = raw.split(";", 1)[0].strip()
                if match := _CONSTANT.fullmatch(rest):
                    value = self._number(match[2], scope, place)
                    self._define(match[1], value, place)
                    continue
                if match := _LABEL.fullmatch(rest):
                    label, rest = match[1], match[2]
                    scope = scope if label.startswith(".") else label
                    self._define(_full(label, scope), address, place)
                if not rest:
                    continue
                words, _, arguments = rest.partition(" ")
                line = _Line(
                    place=place,
                    words=words.lower(),
                    operands=_split(arguments),
                    scope=scope,
                    address=address,
                )
                if line.words == "org":
                    address = self._number(line.operands[0], scope, place)
                    continue
                line.size = self._size(line)
                address += line.size
                lines.append(line)
        return lines

    def _define(self, name: str, value: int, place: str) -> None:
        if name in self.symbols:
            raise UsageError(f"{place}: {name} is there twice: rename one")
        self.symbols[name] = value

    def _size(self, line: _Line) -> int:
        match line.words:
            case "db":
                return len(line.operands)
            case "dw":
                return 2 * len(line.operands)
            case "ds":
                return self._number(line.operands[0], line.scope, line.place)
            case "text" | "blob":
                return len(self._bytes(line))
        return 2 if line.words in BITS else self._instruction(line).size

    def _bytes(self, line: _Line) -> bytes:
        def numbers() -> Sequence[int]:
            return [self._number(operand, line.scope, line.place) for operand in line.operands]

        match line.words:
            case "db":
                return b"".join(_fit(value, 1, line) for value in numbers())
            case "dw":
                return b"".join(_fit(value, 2, line) for value in numbers())
            case "ds":
                return bytes(line.size)
            case "text":
                return self._text(line)
            case "blob":
                if line.operands[0] not in self.blobs:
                    raise _wrong(line, f"names {line.operands[0]}, which the build has not made")
                return self.blobs[line.operands[0]]
        if line.words in BITS:
            return self._bit(line)
        instruction = self._instruction(line)
        given = [o for o in line.operands if o.lower() not in RESERVED]
        if not instruction.immediate:
            return instruction.code
        value = self._number(given[0].strip("[]"), line.scope, line.place)
        if instruction.immediate == "relative":
            value -= line.address + 2
            if not -128 <= value < 128:
                raise _wrong(line, f"is {value} bytes away: use jp")
            return instruction.code + _fit(value, 1, line)
        if line.words == "ldh":
            value &= 0xFF if value >> 8 == 0xFF else 0xFFFF
        return instruction.code + _fit(value, 1 if instruction.immediate == "byte" else 2, line)

    def _text(self, line: _Line) -> bytes:
        text = ",".join(line.operands).strip('"')
        missing = sorted(set(text) - set(self.letters))
        if missing:
            raise _wrong(line, f"has letters that are not drawn: {' '.join(missing)}")
        return bytes(self.letters[letter] for letter in text)

    def _bit(self, line: _Line) -> bytes:
        which = self._number(line.operands[0], line.scope, line.place)
        register = line.operands[1].lower()
        if not 0 <= which < 8 or register not in REGISTERS:
            raise _wrong(line, "needs a bit from 0 to 7 and a register")
        return bytes((0xCB, BITS[line.words] + 8 * which + REGISTERS.index(register)))

    def _instruction(self, line: _Line) -> Instruction:
        forms = []
        for operand in line.operands:
            bare = operand.lower()
            number = "[n]" if bare.startswith("[") else "n"
            forms.append(bare if bare in RESERVED else number)
        form = " ".join([line.words, *([",".join(forms)] if forms else [])])
        if form not in TABLE:
            raise _wrong(line, "is no instruction of this processor")
        return TABLE[form]

    def _number(self, text: str, scope: str, place: str) -> int:
        plain = re.sub(r"\$([0-9A-Fa-f]+)", r"0x\1", text)
        plain = re.sub(r"%([01]+)", r"0b\1", plain)
        plain = re.sub(r"(?<![\w.])\.([A-Za-z_]\w*)", rf"{scope}__\1", plain)
        try:
            # The source is our own: Python itself is the calculator.
            return operator.index(eval(plain.strip(), dict(_FUNCTIONS), self.symbols))
        except (SyntaxError, NameError, TypeError):
            raise UsageError(
                f"{place}: {text.strip()!r} is no number here: define it, or correct it"
            ) from None


def _full(label: str, scope: str) -> str:
    return f"{scope}__{label[1:]}" if label.startswith(".") else label


def _split(arguments: str) -> list[str]:
    return [part.strip() for part in arguments.split(",")] if arguments.strip() else []


def _fit(value: int, size: int, line: _Line) -> bytes:
    if not -(1 << 8 * size - 1) <= value < 1 << 8 * size:
        raise _wrong(line, f"has {value}, which does not go into {size} byte(s)")
    return (value & (1 << 8 * size) - 1).to_bytes(size, "little")


def _wrong(line: _Line, what: str) -> UsageError:
    text = f"{line.words} {', '.join(line.operands)}".strip()
    return UsageError(f"{line.place}: {text!r} {what}. Correct this line")
