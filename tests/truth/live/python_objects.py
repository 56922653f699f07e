"""Half a million small Python objects and no library."""

from wait import ready

rows = [{"step": i, "reward": str(i)} for i in range(200_000)]
ready()
