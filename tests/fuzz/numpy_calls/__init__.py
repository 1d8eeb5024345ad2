"""The fuzzer of calls: every function with a NumPy namesake, compared with NumPy."""

from fuzz.numpy_calls.run import add_arguments, run

__all__ = ["add_arguments", "run"]
