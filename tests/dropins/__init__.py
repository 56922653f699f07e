"""Tests of the memory-saving parts."""
