"""The planned executor: programs on NumPy with planned memory, grouped and packed steps."""

from .plan import planned
from .with_loops import Warming, fused

__all__ = ["Warming", "fused", "planned"]
