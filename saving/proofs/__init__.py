"""Golden vectors: the results of a function where it was saved."""
