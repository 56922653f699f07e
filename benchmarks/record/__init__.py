"""Recording measured: its cost, kills at random moments, the guard, a sweep to out of memory."""
