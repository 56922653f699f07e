"""A card's memory without a card: CUDA's caching allocator, and the snapshots that torch takes."""
