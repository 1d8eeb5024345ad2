"""Layers without weights: ``Activation``, ``Flatten``, ``Rescaling``."""

from __future__ import annotations

from math import prod
from typing import Any, Unpack

import numpy as np

from ...core.extend import Op, as_tensor, is_open, known_size, ops
from .. import activations
from ..base.configured import Configured
from ..base.losses import Rules
from ..base.precision import in_floats

__all__ = ["Activation", "Flatten", "Rescaling"]


class Activation(Configured, saved_as="layers.Activation"):
    """Apply an activation.

    Parameters
    ----------
    activation
        A name (``"relu"``, ...) or any callable of one tensor.
    dtype
        ``"float32"`` to compute in that dtype, even for ``float16`` inputs; or a precision policy.

    Raises
    ------
    ValueError
        If no activation has the name.

    Examples
    --------
    >>> gt.layers.Activation("relu")([-1.0, 2.0]).tolist()
    [0.0, 2.0]
    """

    keeps_mask = True
    takes_integers = True  # a function of your own may be for them

    def __init__(
        self, activation: Any, name: str | None = None, dtype: Any = None, **rules: Unpack[Rules]
    ) -> None:
        super().__init__(name, dtype, **rules)
        self.activation = activations.get(activation)
        self._gradtape_named = self.activation if isinstance(activation, str) else None

    def call(self, x: Any) -> Any:
        """Apply the activation to ``x``."""
        if self.activation is not None and self._is_named():
            x = in_floats(self, x)
        return x if self.activation is None else self.activation(x)

    def _is_named(self) -> bool:
        """Return whether a text names the activation, which then computes with floats."""
        known = self.activation is self._gradtape_named
        return known or (
            isinstance(self.activation, Op)
            and isinstance(activations.serialize(self.activation), str)
        )


class Flatten(Configured, saved_as="layers.Flatten"):
    """Flatten every axis but the first: ``(batch, a, b, ...)`` becomes ``(batch, a * b * ...)``.

    Parameters
    ----------
    data_format
        ``"channels_last"``, the default, or ``"channels_first"``: axis 1 is then moved to the end
        first.

    Raises
    ------
    ValueError
        If ``name`` is not an identifier, or ``data_format`` is unknown. At the call, if the input
        has no axes, or an unknown number of them.

    Examples
    --------
    >>> gt.layers.Flatten()(gt.zeros((2, 3, 4))).shape
    (2, 12)
    """

    takes_integers = True
    takes_one = True

    def __init__(
        self,
        name: str | None = None,
        data_format: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        if data_format not in (None, "channels_last", "channels_first"):
            raise ValueError(
                "Flatten: data_format must be 'channels_last' or 'channels_first', got "
                f"{data_format!r}"
            )
        self.data_format = data_format or "channels_last"

    def call(self, x: Any) -> Any:
        """Flatten ``x``, of at least one axis."""
        if self.data_format == "channels_first" and len(x.array.shape or ()) > 2:
            x = ops["moveaxis"](x, source=1, destination=-1)
        shape = x.array.shape
        if not shape:
            raise ValueError(
                f"layer {self.name!r} (Flatten): the number of axes must be known, and at least "
                f"1, got shape {shape}"
            )
        size = prod(shape[1:])
        # -1 cannot be computed next to a size of 0: the batch may be empty, and so may the rest
        batch = -1 if is_open(shape[0]) and known_size(size) and size else shape[0]
        return ops["reshape"](x, shape=(batch, size))

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        # only if it is set: files without it are as those of versions that did not have it
        config = super().get_config()
        if self.data_format == "channels_last":
            del config["data_format"]
        return config


class Rescaling(Configured, saved_as="layers.Rescaling"):
    """``x * scale + offset``.

    Parameters
    ----------
    scale
        A number, or one for each element of the last axis.
    offset
        The same; 0 by default.

    Raises
    ------
    ValueError
        At the call, if they do not match the last axis.

    Examples
    --------
    >>> gt.layers.Rescaling(1 / 255)([[0, 255]]).tolist()
    [[0.0, 1.0]]
    """

    keeps_mask = True

    def __init__(
        self,
        scale: Any,
        offset: Any = 0.0,
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        self.scale, self.offset = _plain(scale), _plain(offset)

    def call(self, x: Any) -> Any:
        """Scale and shift ``x``."""
        lengths = {len(part) for part in (self.scale, self.offset) if isinstance(part, list)}
        if lengths - {1}:
            x = self.fitted(x, {-1: max(lengths)})
        scale, offset = (
            ops["cast"](as_tensor(part), dtype=x.dtype) for part in (self.scale, self.offset)
        )
        return ops["add"](ops["multiply"](x, scale), offset)


def _plain(value: Any) -> Any:
    """Return numbers in the form of a configuration."""
    return [float(part) for part in value] if np.ndim(value) else float(value)
