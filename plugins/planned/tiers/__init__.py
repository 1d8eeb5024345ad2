"""Tiers: plans that run by NumPy at first, and by compiled loops once these have proved faster.

``tiered`` has the states of such a plan, ``measuring`` times each loop against NumPy, and
``background`` has the thread that compiles.
"""

from .tiered import Plan as Plan
from .tiered import TieredPlan as TieredPlan
from .tiered import loops_of_plugins as loops_of_plugins
