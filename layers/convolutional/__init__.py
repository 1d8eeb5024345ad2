"""Layers over images: convolution, pooling, padding and upsampling."""

from __future__ import annotations

from . import convolutions, resizing
from .convolutions import *
from .resizing import *

__all__: list[str] = []
__all__ += convolutions.__all__
__all__ += resizing.__all__
