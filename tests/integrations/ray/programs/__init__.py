"""Programs that use a cluster, as users write them."""
