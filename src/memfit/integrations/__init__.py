"""Parts that plug memfit into other systems, one file each."""
