"""Ops that join elements along axes: sums, variances, extremes, truth, and running results.

``builder`` makes such an op; ``options`` holds what ``where=``, ``initial=`` and ``dtype=`` ask.
The functions named ``nan...`` skip nan; they are made of the others.
"""
