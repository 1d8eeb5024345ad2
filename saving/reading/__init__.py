"""From a file to a live module."""
