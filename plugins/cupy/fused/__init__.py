"""Whole ops as one kernel each, for eager calls: a call of CuPy takes longer than most kernels.

A portable kernel calls CuPy for each of its formulas, and each call takes the host 5 to 20
microseconds. Here an op is one launch of a kernel in CUDA C. Sizes are arguments of the kernels, so
that a kernel is compiled once for each dtype, and never again for another shape. Sums are in an
order that depends on the shapes alone.

``sources`` compiles kernels. ``rows`` has softmax and the cross-entropies, ``columns`` has batch
normalisation, ``gates`` the cells of recurrent networks. What they do not take (other dtypes,
layouts or axes, and arrays for which one block for each sum is too slow) goes to the portable
kernels. Traced programs do not use these kernels: they are planned from the portable ones.
"""
