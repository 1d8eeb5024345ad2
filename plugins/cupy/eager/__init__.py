"""Ops that run one by one on CuPy, with few launches, each prepared once.

CuPy's functions check their arguments, find a kernel and compute its arguments with every call, and
a portable kernel calls several of them. Here an op is lowered to steps, as for a compiled program.
``plans`` does that, and makes one kernel of an elementwise op; ``several`` orders the kernels and
products of all others. ``texts`` writes kernels in CUDA C for all sizes, and ``launchers``
remembers, for the dtypes and shapes of arrays, what to launch.

What cannot be lowered runs as before, by CuPy's functions: arrays without elements, complex
numbers, ops that only make views, sums of very many numbers. No list of ops decides that: it
depends on their steps, so on ``gradtape_lowerings`` for plugins' ops.
"""
