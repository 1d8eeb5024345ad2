"""Ops on each element by itself, by the headings of NumPy's manual.

A rule is named for the input that it differentiates; ``g`` is the upstream gradient. Where an op
has no derivative (at a tie, at a bound) the rules follow TensorFlow. Formulas beside a ``native``
kernel are for libraries that have no more than the array API standard.
"""
