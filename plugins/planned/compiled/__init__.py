"""Groups as loops that numba compiles: at once, or for programs that have run long enough."""
