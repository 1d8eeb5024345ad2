"""Golden vectors: what a function gave where it was saved."""
