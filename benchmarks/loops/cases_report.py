"""Loops for the report alone: written last, and never looked at while anything is tuned."""

from __future__ import annotations

from benchmarks.loops.case import Loop

REPORTED: tuple[Loop, ...] = ()
