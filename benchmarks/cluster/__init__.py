"""Studies within a limit of memory, beside the same studies with a worst-case share for all."""
