"""Images with channels last: resizing, flipping, colours, edges, and similarity measures."""

from __future__ import annotations

# the whole package before its parts: threads that start with different parts would deadlock
from ..plugins import ops  # noqa: F401
from ..plugins.ops.images.colours import *
from ..plugins.ops.images.colours import __all__ as _colours
from ..plugins.ops.images.measures import *
from ..plugins.ops.images.measures import __all__ as _measures
from ..plugins.ops.images.placing import *
from ..plugins.ops.images.placing import __all__ as _placing
from ..plugins.ops.images.resizing import resize, resize_with_pad
from ..public import publish

__all__: list[str] = []
__all__ += [*_colours, *_measures, *_placing, "resize", "resize_with_pad"]

publish(__name__)
