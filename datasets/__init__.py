"""Small real data sets that are part of the package."""

from ..public import publish
from .digits import load_digits

__all__ = ["load_digits"]

publish(__name__)
