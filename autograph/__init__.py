"""Python's own control flow on traced tensors: ``gt.function(fn, autograph=True)``.

Needs ``pip install "gradtape[autograph]"``. :mod:`gradtape.autograph` holds what says how.
"""

from __future__ import annotations

# as a whole, before its parts: threads that began with different parts would wait for each other
from ..core import extend  # noqa: F401
from ..public import publish
from .conversion import do_not_convert, set_loop_options, to_code, to_graph

__all__ = ["do_not_convert", "set_loop_options", "to_code", "to_graph"]


publish(__name__)
