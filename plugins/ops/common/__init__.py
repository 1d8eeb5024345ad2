"""Tools that rooms of ops share.

``op_builders`` makes ops. ``kernels`` and ``scattering`` hold what kernels share, ``gradients``
what gradient rules share, ``batching`` the rules by which ops run on a hidden leading axis.
``axes``, ``dtypes`` and ``ranks`` are for all of them, and for the public functions.
"""
