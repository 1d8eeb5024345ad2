"""Groups as loops that LLVM compiles."""
