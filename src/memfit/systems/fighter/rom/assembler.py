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
from collections.abc import Callable, Iterator, Mapping
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


@dataclass(frozen=True, kw_only=True)
class _Statement:
    """One statement, with the address that it is put at."""

    place: str
    words: str
    operands: list[str]
    scope: str  # the last label without a dot
    address: int


@dataclass(kw_only=True)
class Assembler:
    """Assembles files of source into an image of a fixed size."""

    size: int
    letters: Mapping[str, int] = field(default_factory=dict)
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    symbols: dict[str, int] = field(default_factory=dict)
    _labels: dict[str, int] | None = None  # those of the first time

    def assemble(self, files: Mapping[str, str]) -> Program:
        """All lines twice: only the second time it is known where later labels are."""
        for _ in self._code(files):
            pass
        self._labels, self.symbols = self.symbols, {}
        image = bytearray(self.size)
        used = bytearray(self.size)
        end = 0
        for line, code in self._code(files):
            where = slice(line.address, line.address + len(code))
            if where.stop > self.size:
                raise _wrong(line, f"is put at ${line.address:04X}, beyond the cartridge's end")
            if any(used[where]):
                raise _wrong(line, f"is put at ${line.address:04X}, where something is already")
            used[where] = b"\1" * len(code)
            image[where] = code
            end = max(end, where.stop)
        return Program(image=bytes(image), symbols=self.symbols, end=end)

    def _code(self, files: Mapping[str, str]) -> Iterator[tuple[_Statement, bytes]]:
        """Every line that is put somewhere, with its bytes; the first time they may be wrong."""
        address, scope = 0, ""
        for name, text in files.items():
            for number, raw in enumerate(text.splitlines(), 1):
                place = f"{name}:{number}"
                rest = raw.split(";", 1)[0].strip()
                if match := _CONSTANT.fullmatch(rest):
                    value = self._number(match[2], scope, place, self.symbols)
                    self._define(match[1], value, place)
                    continue
                if match := _LABEL.fullmatch(rest):
                    label, rest = match[1], match[2]
                    scope = scope if label.startswith(".") else label
                    self._define(label.replace(".", f"{scope}__"), address, place)
                if not rest:
                    continue
                words, _, arguments = rest.partition(" ")
                line = _Statement(
                    place=place,
                    words=words.lower(),
                    operands=[part.strip() for part in arguments.split(",") if arguments.strip()],
                    scope=scope,
                    address=address,
                )
                if line.words == "org":
                    address = self._number(line.operands[0], scope, place, self.symbols)
                    continue
                code = self._bytes(line)
                address += len(code)
                yield line, code

    def _define(self, name: str, value: int, place: str) -> None:
        if name in self.symbols:
            raise UsageError(f"{place}: {name} is there twice: rename one")
        self.symbols[name] = value

    def _bytes(self, line: _Statement) -> bytes:
        match line.words:
            case "db" | "dw":
                size = 1 if line.words == "db" else 2
                return b"".join(self._value(operand, size, line) for operand in line.operands)
            case "ds":
                return bytes(self._number(line.operands[0], line.scope, line.place, self.symbols))
            case "text":
                return self._text(line)
            case "blob":
                if line.operands[0] not in self.blobs:
                    raise _wrong(line, f"names {line.operands[0]}, which the build has not made")
                return self.blobs[line.operands[0]]
        if line.words in BITS:
            return self._bit(line)
        instruction = self._instruction(line)
        if not instruction.immediate:
            return instruction.code
        given = next(o for o in line.operands if o.lower() not in RESERVED).strip("[]")
        if instruction.immediate == "relative":
            given = f"{given} - {line.address + 2}"
        size = 2 if instruction.immediate == "word" else 1
        return instruction.code + self._value(given, size, line)

    def _value(self, operand: str, size: int, line: _Statement) -> bytes:
        """An operand as bytes, low byte first; nothing yet where labels are not known."""
        if self._labels is None:
            return bytes(size)
        value = self._number(operand, line.scope, line.place, self._labels)
        most = 1 << 8 * size
        if line.words == "ldh" and value >> 8 == 0xFF:
            value %= most
        if line.words == "jr" and not -most // 2 <= value < most // 2:
            raise _wrong(line, f"is {value} bytes away: use jp")
        if not -most // 2 <= value < most:
            raise _wrong(line, f"has {value}, which does not go into {size} byte(s)")
        return (value % most).to_bytes(size, "little")

    def _text(self, line: _Statement) -> bytes:
        text = ",".join(line.operands).strip('"')
        missing = sorted(set(text) - set(self.letters))
        if missing:
            raise _wrong(line, f"has letters that are not drawn: {' '.join(missing)}")
        return bytes(self.letters[letter] for letter in text)

    def _bit(self, line: _Statement) -> bytes:
        which = self._number(line.operands[0], line.scope, line.place, self.symbols)
        register = line.operands[1].lower()
        if not 0 <= which < 8 or register not in REGISTERS:
            raise _wrong(line, "needs a bit from 0 to 7 and a register")
        return bytes((0xCB, BITS[line.words] + 8 * which + REGISTERS.index(register)))

    def _instruction(self, line: _Statement) -> Instruction:
        forms = []
        for operand in line.operands:
            bare = operand.lower()
            number = "[n]" if bare.startswith("[") else "n"
            forms.append(bare if bare in RESERVED else number)
        form = " ".join([line.words, *([",".join(forms)] if forms else [])])
        if form not in TABLE:
            raise _wrong(line, "is no instruction of this processor")
        return TABLE[form]

    def _number(self, text: str, scope: str, place: str, known: Mapping[str, int]) -> int:
        plain = re.sub(r"\$([0-9A-Fa-f]+)", r"0x\1", text)
        plain = re.sub(r"%([01]+)", r"0b\1", plain)
        plain = re.sub(r"(?<![\w.])\.([A-Za-z_]\w*)", rf"{scope}__\1", plain)
        try:
            # The source is our own: Python itself is the calculator.
            return operator.index(eval(plain.strip(), dict(_FUNCTIONS), known))
        except (SyntaxError, NameError, TypeError):
            raise UsageError(
                f"{place}: {text.strip()!r} is no number here: define it, or correct it"
            ) from None


def _wrong(line: _Statement, what: str) -> UsageError:
    text = f"{line.words} {', '.join(line.operands)}".strip()
    return UsageError(f"{line.place}: {text!r} {what}. Correct this line")
