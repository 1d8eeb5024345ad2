"""Activations, each an op of its own: one pass forward, one rule.

Those of NumPy's own names (``tanh``) are elementwise ops like any other and stand there.
"""
