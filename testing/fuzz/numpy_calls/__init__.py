"""The fuzzer of calls: every function with a NumPy namesake, against NumPy."""

from .run import add_arguments, run

__all__ = ["add_arguments", "run"]
