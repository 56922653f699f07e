"""Child processes that memfit starts: sandboxed jobs, measured and launched commands."""
