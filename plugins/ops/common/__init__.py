"""Tools that rooms of ops share.

``op_builders`` makes ops; ``kernels``, ``dtypes``, ``axes`` and ``ranks`` hold what kernels and
rules ask about arrays, ``batching`` the rules by which ops run on a hidden leading axis.
"""
