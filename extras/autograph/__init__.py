"""Python's own control flow on traced tensors: ``gt.function(fn, autograph=True)``.

Needs ``pip install "gradtape[autograph]"``. The functions of :mod:`gradtape.autograph` control the
conversion.
"""

from __future__ import annotations

# the whole package before its parts: if threads start with different parts, they can deadlock
from ..core import extend  # noqa: F401
from ..public import publish
from .conversion import do_not_convert, set_loop_options, to_code, to_graph

__all__ = ["do_not_convert", "set_loop_options", "to_code", "to_graph"]


publish(__name__)
