"""Functions for other runtimes."""
