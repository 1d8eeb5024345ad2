"""Activations, each as one op, with one forward kernel and one gradient rule.

Those with names of NumPy's (``tanh``) are among the elementwise ops.
"""
