"""What stands directly under ``tf`` for clipping values and gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradtape

from ..names import adapts
from ..tensors import convert_to_tensor, plain

__all__ = ["clip_by_global_norm", "clip_by_norm", "clip_by_value"]


@adapts("clip")
def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> Any:
    """Return ``t`` kept between two bounds; the gradient on a bound is 1."""
    return gradtape.clip(convert_to_tensor(t), clip_value_min, clip_value_max)


@adapts("clip_by_norm")
def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Any:
    """Return ``t`` scaled down, where needed, to a Euclidean norm of at most ``clip_norm``."""
    return gradtape.clip_by_norm(convert_to_tensor(t), clip_norm, plain(axes))


@adapts("training.clip_by_global_norm")
def clip_by_global_norm(
    t_list: Sequence[Any], clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Any], Any]:
    """Return tensors scaled down together to a norm of at most ``clip_norm``, and their norm.

    Entries that are None stay None.
    """
    return gradtape.training.clip_by_global_norm(t_list, clip_norm, use_norm)
