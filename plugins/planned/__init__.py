"""The planned executor: programs on NumPy with planned memory, grouped and packed steps."""

from .with_loops import fused, warming
from .plan import planned

__all__ = ["fused", "planned", "warming"]
