"""From a RunSpec and its readings to components: the only byte arithmetic in memfit."""
