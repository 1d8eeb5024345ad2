"""Small real data sets that come with the package."""

from .digits import load_digits

__all__ = ["load_digits"]
