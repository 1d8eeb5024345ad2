"""Names directly under ``tf``, by theme."""

from __future__ import annotations

from . import arrays, control, functions, indexing
from .arrays import *
from .control import *
from .functions import *
from .indexing import *

__all__ = arrays.__all__ + control.__all__ + functions.__all__ + indexing.__all__
