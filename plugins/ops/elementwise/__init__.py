"""Elementwise ops, under the headings of NumPy's manual.

A rule is named after the input that it differentiates; ``g`` is the upstream gradient. Where an op
has no derivative (at a tie, at a bound) the rules follow TensorFlow. Formulas next to a ``native``
kernel are for libraries that have only the array API standard.
"""
