"""Lazy data pipelines, which you can iterate over repeatedly and which may exceed memory."""

from __future__ import annotations

from ..public import publish
from . import dataset
from .dataset import *

# for training
from .dataset import sharding_of as sharding_of
from .sources import length_of as length_of

__all__: list[str] = []
__all__ += dataset.__all__

publish(__name__)
