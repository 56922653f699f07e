"""What surrounds a user's code in the disposable child: confinement, hooks, failures."""
