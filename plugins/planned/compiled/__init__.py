"""Groups as loops that numba compiles."""
