"""The JSON of a file, and the Python values that it stands for."""
