"""Checks of settings that do not do what they seem to."""
