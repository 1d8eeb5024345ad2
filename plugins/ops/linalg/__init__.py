"""Linear algebra: products, equations, decompositions, eigenvalues and norms.

Matrices are in the last two axes, and all axes before them are a batch. ``matrices`` holds what
rules and functions share.
"""
