"""Writing: a plan's steps as the source of one Python function.

``emission`` writes calls, one after another, with the buffers of their results; ``groups`` has the
lines of elementwise groups and of joined arrays, ``loops`` those of scans, and ``sharing`` those
that threads share. ``short_sums`` has functions for sums that NumPy's reductions are slow at.
"""

from .emission import Emission as Emission
from .loops import write_loop as write_loop
from .short_sums import numbers_to_sum as numbers_to_sum
