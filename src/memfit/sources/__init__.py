"""From anything that describes a run to a RunSpec: specs, scripts, factories, live objects."""
