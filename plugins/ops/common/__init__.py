"""Tools that the folders of ops share.

``op_builders`` makes ops. ``kernels`` and ``scattering`` hold helpers for kernels, ``gradients``
helpers for gradient rules, and ``batching`` the rules by which ops run on a hidden leading axis.
``axes``, ``dtypes`` and ``ranks`` serve all of these, and the public functions.
"""
