"""Walks the object graph of another Python process from outside, without its help or a pause.

The answer has the fields that a process tells of itself (see `memfit.inside`).
"""
