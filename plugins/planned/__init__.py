"""The planned executor: programs on NumPy with planned memory, grouped and packed steps."""

from .plan import compile_program, planned

__all__ = ["compile_program", "planned"]
