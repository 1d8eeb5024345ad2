"""How pickle stores arrays and traced functions: as the bytes of a file."""
