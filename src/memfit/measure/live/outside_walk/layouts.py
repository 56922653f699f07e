"""Where CPython keeps what: the layouts of its objects, by version.

Offsets are in bytes. What is the same in all versions that are known stands in the constants; a
walk believes none of it before the objects of a process have shown that they are laid out so.
"""

from __future__ import annotations

from dataclasses import dataclass

# Every object: how often it is held, its type; after these, of those of any length, how long.
TYPE, LENGTH, HEAD = 8, 16, 16
GC_HEADER = 16  # before objects that the collector knows

# Types.
TYPE_NAME, TYPE_BASIC, TYPE_ITEM, TYPE_FLAGS = 24, 32, 40, 168
TYPE_MEMBERS, TYPE_BASE, TYPE_DICT, TYPE_DICT_OFFSET, TYPE_MRO = 240, 256, 264, 288, 344
TYPE_WORDS = 48
MEMBER_WORDS = 5  # name, kind, offset, flags, text
OBJECT_MEMBERS = (6, 16)  # kinds of members that are pointers to objects
READY = 1 << 12
HAS_GC = 1 << 14
MANAGED_WEAKREFS, MANAGED_DICT, INLINE_VALUES = 1 << 3, 1 << 4, 1 << 2
HEAP_TYPE = 1 << 9
IS_INT, IS_LIST, IS_TUPLE, IS_BYTES, IS_STR, IS_DICT, _, IS_TYPE = (1 << at for at in range(24, 32))

# Dictionaries and the tables of their keys.
DICT_USED, DICT_KEYS, DICT_VALUES, DICT_WORDS = 2, 4, 5, 6  # in words
KEYS_ENTRIES, KEYS_HEAD = 3, 32
GENERAL_KEYS, SPLIT_KEYS = 0, 2

LIST_ITEMS, LIST_ROOM, TUPLE_ITEMS = 24, 32, 24
SET_MASK, SET_TABLE, SET_SMALL_TABLE = 4, 5, 8  # in words
DEQUE_LEFT, DEQUE_INDEX, DEQUE_BLOCK = 3, 5, 64  # in words; elements of a block
CELL, MODULE_DICT, METHOD_FUNCTION, METHOD_SELF = 16, 16, 16, 24
FUNCTION_GLOBALS, FUNCTION_CODE, FUNCTION_WORDS = 2, 6, 12  # in words
FUNCTION_DEFAULTS, FUNCTION_KEYWORD_DEFAULTS, FUNCTION_CLOSURE, FUNCTION_DICT = 7, 8, 9, 11
CODE_FLAGS, CODE_NAMES, CODE_KINDS, CODE_FILE, CODE_NAME = 48, 96, 104, 112, 128
CODE_HELD = (24, 32, 40, 96, 104, 112, 120, 128, 136)
FREE_VARIABLE, CELL_VARIABLE = 0x80, 0x40
OPTIMIZED = 0x1
BYTES_DATA = 32
BYTEARRAY_ROOM = 24


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What differs between versions."""

    cached_keys: int  # of a class: the names of its instances' attributes
    pre_header: int  # before the collector's header, of instances with attributes
    values_before: int  # where a pointer to an instance's values stands, before the instance
    dict_before: int
    values_head: int  # of the values themselves
    values_tagged: bool  # one word is the values, if odd, or the dictionary
    values_inline: bool  # the values stand behind the instance
    text_head: int  # of a text of ASCII alone
    thread_frame: int
    frame_behind_pointer: int  # where the running frame stands in what that leads to; -1: nowhere
    frame_code: int  # in words, as all of a frame
    frame_previous: int
    frame_globals: int
    frame_locals: int


_OLD = Layout(
    cached_keys=872,
    pre_header=16,
    values_before=32,
    dict_before=24,
    values_head=0,
    values_tagged=False,
    values_inline=False,
    text_head=48,
    thread_frame=56,
    frame_behind_pointer=8,
    frame_code=4,
    frame_previous=6,
    frame_globals=1,
    frame_locals=9,
)
_TAGGED = Layout(
    cached_keys=880,
    pre_header=16,
    values_before=24,
    dict_before=24,
    values_head=0,
    values_tagged=True,
    values_inline=False,
    text_head=40,
    thread_frame=56,
    frame_behind_pointer=0,
    frame_code=0,
    frame_previous=1,
    frame_globals=3,
    frame_locals=9,
)
_INLINE = Layout(
    cached_keys=880,
    pre_header=16,
    values_before=0,
    dict_before=24,
    values_head=8,
    values_tagged=False,
    values_inline=True,
    text_head=40,
    thread_frame=72,
    frame_behind_pointer=-1,
    frame_code=0,
    frame_previous=1,
    frame_globals=3,
    frame_locals=9,
)
LAYOUTS = {(3, 11): _OLD, (3, 12): _TAGGED, (3, 13): _INLINE}
