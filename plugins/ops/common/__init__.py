"""Tools that the folders of ops share.

``op_builders`` makes ops, and ``kernels`` holds helpers for kernels. ``axes`` has the rules by
which ops run on a hidden leading axis. It and ``dynamic_shapes`` also serve the public functions.
"""
