"""The tape: records of ops, the backward pass over them, Jacobians, and where a gradient ended.

Stands on batches: the rows of a Jacobian go back as one. Hands out ``GradientTape``; ``debug``
holds ``nan_guard``.
"""
