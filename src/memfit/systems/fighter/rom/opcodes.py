"""The instructions of the Game Boy's processor, the SM83, by the way they are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Immediate = Literal["", "byte", "word", "relative"]

REGISTERS = ("b", "c", "d", "e", "h", "l", "[hl]", "a")
PAIRS = ("bc", "de", "hl", "sp")
CONDITIONS = ("nz", "z", "nc", "c")
ARITHMETIC = ("add", "adc", "sub", "sbc", "and", "xor", "or", "cp")
ROTATIONS = ("rlc", "rrc", "rl", "rr", "sla", "sra", "swap", "srl")
BITS = {"bit": 0x40, "res": 0x80, "set": 0xC0}
# Operands that are names of their own and no numbers.
RESERVED = {
    *REGISTERS,
    *PAIRS,
    *CONDITIONS,
    *("af", "[bc]", "[de]", "[hl+]", "[hl-]", "[c]"),
}


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """Its bytes, and what number follows them."""

    code: bytes
    immediate: Immediate = ""


def _table() -> dict[str, Instruction]:
    """All forms; `n` stands for a number and `[n]` for what is at an address."""
    table: dict[str, Instruction] = {}

    def put(form: str, *code: int, immediate: Immediate = "") -> None:
        table[form] = Instruction(code=bytes(code), immediate=immediate)

    for i, name in enumerate(("rlca", "rrca", "rla", "rra", "daa", "cpl", "scf", "ccf")):
        put(name, 0x07 + 8 * i)
    for i, register in enumerate(REGISTERS):
        put(f"ld {register},n", 0x06 + 8 * i, immediate="byte")
        put(f"inc {register}", 0x04 + 8 * i)
        put(f"dec {register}", 0x05 + 8 * i)
        for j, other in enumerate(REGISTERS):
            if (register, other) != ("[hl]", "[hl]"):
                put(f"ld {register},{other}", 0x40 + 8 * i + j)
    for i, name in enumerate(ARITHMETIC):
        put(f"{name} n", 0xC6 + 8 * i, immediate="byte")
        for j, register in enumerate(REGISTERS):
            put(f"{name} {register}", 0x80 + 8 * i + j)
    for i, name in enumerate(ROTATIONS):
        for j, register in enumerate(REGISTERS):
            put(f"{name} {register}", 0xCB, 8 * i + j)
    for i, pair in enumerate(PAIRS):
        put(f"ld {pair},n", 0x01 + 16 * i, immediate="word")
        put(f"inc {pair}", 0x03 + 16 * i)
        put(f"dec {pair}", 0x0B + 16 * i)
        put(f"add hl,{pair}", 0x09 + 16 * i)
    for i, pair in enumerate(("bc", "de", "hl", "af")):
        put(f"push {pair}", 0xC5 + 16 * i)
        put(f"pop {pair}", 0xC1 + 16 * i)
    for i, pointer in enumerate(("[bc]", "[de]", "[hl+]", "[hl-]")):
        put(f"ld {pointer},a", 0x02 + 16 * i)
        put(f"ld a,{pointer}", 0x0A + 16 * i)
    for i, condition in enumerate(CONDITIONS):
        put(f"jr {condition},n", 0x20 + 8 * i, immediate="relative")
        put(f"jp {condition},n", 0xC2 + 8 * i, immediate="word")
        put(f"call {condition},n", 0xC4 + 8 * i, immediate="word")
        put(f"ret {condition}", 0xC0 + 8 * i)
    put("nop", 0x00)
    put("stop", 0x10, 0x00)
    put("halt", 0x76)
    put("di", 0xF3)
    put("ei", 0xFB)
    put("ret", 0xC9)
    put("reti", 0xD9)
    put("jp hl", 0xE9)
    put("ld sp,hl", 0xF9)
    put("ldh [c],a", 0xE2)
    put("ldh a,[c]", 0xF2)
    put("jr n", 0x18, immediate="relative")
    put("jp n", 0xC3, immediate="word")
    put("call n", 0xCD, immediate="word")
    put("ld [n],a", 0xEA, immediate="word")
    put("ld a,[n]", 0xFA, immediate="word")
    put("ld [n],sp", 0x08, immediate="word")
    put("ldh [n],a", 0xE0, immediate="byte")
    put("ldh a,[n]", 0xF0, immediate="byte")
    put("add sp,n", 0xE8, immediate="byte")
    return table


TABLE = _table()
