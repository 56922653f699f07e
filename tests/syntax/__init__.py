"""Tests of what the text of a file says by its syntax tree alone."""
