"""Layers over images: convolution, pooling, padding and upsampling."""

from __future__ import annotations

from . import convolution, pooling, resizing, separable, transposed
from .convolution import *
from .pooling import *
from .resizing import *
from .separable import *
from .transposed import *

__all__: list[str] = []
__all__ += convolution.__all__
__all__ += pooling.__all__
__all__ += resizing.__all__
__all__ += separable.__all__
__all__ += transposed.__all__
