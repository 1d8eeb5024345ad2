"""Functions as graphs: ``function``, custom gradients, recomputation, and ops that run graphs.

It uses graphs, the tape and ``vmap``. It provides ``function``, ``custom_gradient`` and
``recompute_grad``, and for control flow ``trace_branch`` and ``Program``.
"""
