"""Checks of what an update takes."""
