"""From a live module to a file."""
