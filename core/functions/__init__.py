"""Functions as graphs: ``function``, custom gradients, recomputation, and ops that run graphs.

Stands on graphs and the tape. Hands out ``function``, ``custom_gradient``, ``recompute_grad``, and
``trace_branch`` and ``Program`` for control flow.
"""
