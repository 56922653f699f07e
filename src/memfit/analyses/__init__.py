"""Pure answers from a ledger: bounds, capacity, where a run crosses its limit."""
