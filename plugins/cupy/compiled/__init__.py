"""Compiled execution on CuPy: traced programs as few kernels, made for their shapes.

The planned executor says how (``plugins.planned``): it makes steps of ops, groups of elementwise
steps, packs of updates. Here ``lowering`` says what differs from NumPy, with ``arranging`` for what
only arranges elements, and ``windows`` for convolutions; ``formulas`` says what steps are in CUDA
C, ``kernels`` writes a group as kernels, ``products`` multiplies matrices, and ``plan`` is the
order of all calls, with the memory. ``programs`` keeps plans by the shapes of inputs, and
``graphs`` captures a plan's work once in a CUDA graph, for those who ask for it.

What CuPy lets go of is used again by whoever comes next on the same stream, so that results and new
values of variables are simply new arrays: no array that anybody else may hold is written.
"""
