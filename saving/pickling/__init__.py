"""What pickle keeps of arrays and traced functions: the bytes of a file."""
