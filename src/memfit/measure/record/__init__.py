"""Recordings of a running tree, and the guard that keeps it below a limit."""
