"""Everything that touches processes: readers of /proc, sandboxed children, rehearsals."""
