"""Shared parts of layers over images: the position of the channels, and windows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar

from ...core.extend import known_size, ops
from ..base.configured import Configured

__all__ = ["Spatial"]

_AXES = {1: "steps", 2: "rows, columns", 3: "planes, rows, columns"}


class Spatial(Configured):
    """A layer over images of ``rank`` spatial axes, with the channels last or first.

    Attributes
    ----------
    _member : str
        The docstring of a family's classes. ``{name}`` stands for the class, ``{axes}`` for its
        spatial axes, and ``{8}`` for an 8 for each of them.
    """

    rank: ClassVar[int]
    _member: ClassVar[str] = ""
    data_format: str

    def __init_subclass__(cls, **kwargs: Any) -> None:
        rank = vars(cls).get("rank")
        if rank and not cls.__doc__:
            text = cls._member.replace("{name}", cls.__name__).replace("{axes}", _AXES[rank])
            cls.__doc__ = re.sub(r"{(\d+)}", lambda size: ", ".join([size[1]] * rank), text)
        super().__init_subclass__(**kwargs)

    def set_data_format(self, data_format: str | None) -> None:
        """Store the position of the channels.

        Raises
        ------
        ValueError
            If it is neither ``"channels_last"`` (or ``None``) nor ``"channels_first"``.
        """
        if data_format not in (None, "channels_last", "channels_first"):
            raise ValueError(
                f"{type(self).__name__}: data_format must be 'channels_last' or 'channels_first', "
                f"got {data_format!r}"
            )
        self.data_format = data_format or "channels_last"

    @property
    def channels_axis(self) -> int:
        """The axis of the channels."""
        return -1 if self.data_format == "channels_last" else 1

    def known_rank(self, x: Any) -> Any:
        """Return a shape; raise if a trace does not know the number of axes."""
        if x.array.shape is None:
            raise ValueError(
                f"layer {self.name!r} ({type(self).__name__}): the rank of its input must be "
                "known; use a TensorSpec with a rank"
            )
        return x.array.shape

    def images(self, x: Any) -> Any:
        """Return inputs with their channels last.

        Raises
        ------
        ValueError
            If they have a different number of axes.
        """
        shape = x.array.shape
        if shape is not None and len(shape) != self.rank + 2:
            last = self.data_format == "channels_last"
            axes = f"{_AXES[self.rank]}, channels" if last else f"channels, {_AXES[self.rank]}"
            raise ValueError(
                f"layer {self.name!r} ({type(self).__name__}): expected inputs of shape "
                f"(batch, {axes}), got {shape}"
            )
        if self.data_format == "channels_last":
            return x
        return ops["moveaxis"](x, source=1, destination=-1)

    def wide_enough(self, x: Any, windows: Sequence[int]) -> None:
        """Raise if channels-last images are known to be smaller than a window."""
        shape = x.array.shape
        for n, window in zip(() if shape is None else shape[1:-1], windows):
            if known_size(n) and n < window:
                raise ValueError(
                    f"layer {self.name!r} ({type(self).__name__}): windows of {tuple(windows)} do "
                    f"not fit into images of {tuple(shape[1:-1])}; with padding='same' they do"
                )

    def as_given(self, y: Any) -> Any:
        """Return a result with its channels at the position of the inputs' channels."""
        if self.data_format == "channels_last":
            return y
        return ops["moveaxis"](y, source=-1, destination=1)
