"""Compiled execution on CuPy: traced programs as few kernels, made for their shapes.

The planned executor (``plugins.planned``) provides the method: it splits ops into steps, groups
elementwise steps, and packs updates. Here ``lowering`` has the differences from NumPy, with
``rules`` for ops that only arrange elements, and for convolutions. ``formulas`` has the CUDA C of
steps, ``kernels`` writes a group as kernels, ``products`` multiplies matrices, and ``plan`` has the
order of all calls, with the memory. ``programs`` keeps plans by the shapes of inputs, and captures
a plan's work once in a CUDA graph, on request.

CuPy reuses memory that it releases for later work on the same stream. So results and new values of
variables are simply new arrays: no array that other code may hold is written to.
"""
