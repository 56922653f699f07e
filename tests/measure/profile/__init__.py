"""Readings of a process whose environment waits."""
