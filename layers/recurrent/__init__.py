"""Recurrent layers, and their cells."""

from __future__ import annotations

from . import cells, gated, rnn, wrappers
from .cells import *
from .gated import *
from .rnn import *
from .wrappers import *

__all__: list[str] = []
__all__ += cells.__all__
__all__ += gated.__all__
__all__ += rnn.__all__
__all__ += wrappers.__all__
