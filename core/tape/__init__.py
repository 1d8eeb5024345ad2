"""The tape: records of ops, the backward pass, Jacobians, and reports of broken paths.

It uses ``batches`` to compute all rows of a Jacobian in one backward pass. It provides
``GradientTape``; ``nan_guard`` is in ``debug``.
"""
