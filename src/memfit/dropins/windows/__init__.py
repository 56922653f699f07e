"""Buffers that store each frame of a stack, and each sample of a window, once."""
