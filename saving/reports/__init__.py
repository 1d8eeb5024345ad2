"""The contents of a file, and whether it still computes the same values."""
