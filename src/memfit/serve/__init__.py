"""The live view as a web page: one reader for each run, any number of viewers, a locked door."""
