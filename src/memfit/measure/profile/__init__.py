"""Environments that are stepped in a child and read from outside."""
