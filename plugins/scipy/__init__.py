"""SciPy's special functions as ops, with their derivatives; ``plugin`` is imported first."""
