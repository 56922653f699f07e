"""Checks of what is stored and how."""
