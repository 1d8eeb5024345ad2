"""Small real data sets that are part of the package, and those of plugins by name."""

from ..public import publish
from .loading import load, load_digits

__all__ = ["load", "load_digits"]

publish(__name__)
