"""Reductions: sums, variances, extremes, truth, and running results.

``builder`` makes such an op, and implements ``where=``, ``initial=`` and ``dtype=``. The functions
named ``nan...`` skip nan and are made of the others.
"""
