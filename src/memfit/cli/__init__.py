"""The command line: one small file a command; it parses, calls the API and renders."""

from memfit.cli.app import main

__all__ = ["main"]
