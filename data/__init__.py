"""Lazy data pipelines, which you can iterate over repeatedly and which may exceed memory."""

from __future__ import annotations

from ..public import publish
from . import dataset, images, ragged, sparse, texts
from .dataset import *

# for training
from .dataset import sharding_of as sharding_of
from .images import *
from .ragged import *
from .sources import length_of as length_of
from .sparse import *
from .texts import *

__all__: list[str] = []
__all__ += dataset.__all__
__all__ += images.__all__
__all__ += ragged.__all__
__all__ += sparse.__all__
__all__ += texts.__all__

publish(__name__)
