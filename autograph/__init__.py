"""Python's control flow on traced tensors."""

from .calls import running

__all__ = ["running"]
