"""Activations with settings or weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, ClassVar, Unpack

import numpy as np

from ...core.extend import Variable, as_tensor, ops
from .. import initializers
from ..base.configured import Configured
from ..base.layer import Elsewhere
from ..base.masks import mask_along
from ..base.weights import Rules

__all__ = ["ELU", "LeakyReLU", "PReLU", "ReLU", "Softmax"]


class ReLU(Configured, saved_as="layers.ReLU"):
    """``max(x, 0)``, with three settings.

    Parameters
    ----------
    max_value
        The largest result; none by default.
    negative_slope
        The slope below ``threshold``, 0 by default.
    threshold
        Where the ramp begins, 0 by default.

    Raises
    ------
    ValueError
        If a setting is negative.

    Notes
    -----
    The result is ``max_value`` for ``x >= max_value``, ``x`` from ``threshold`` up to that, and
    ``negative_slope * (x - threshold)`` below ``threshold``, as in Keras.

    Examples
    --------
    >>> gt.layers.ReLU(max_value=6)([-1.0, 2.0, 8.0]).tolist()
    [0.0, 2.0, 6.0]
    """

    keeps_mask = True

    def __init__(
        self,
        max_value: float | None = None,
        negative_slope: float = 0.0,
        threshold: float = 0.0,
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        settings = {
            "max_value": max_value,
            "negative_slope": negative_slope,
            "threshold": threshold,
        }
        for setting, value in settings.items():
            if value is not None and not value >= 0:
                raise ValueError(f"ReLU: {setting} must not be negative, got {value!r}")
        self.max_value = None if max_value is None else float(max_value)
        self.negative_slope, self.threshold = float(negative_slope), float(threshold)

    def call(self, x: Any) -> Any:
        """Apply the ramp."""
        return ramp(x, self.negative_slope, self.max_value, self.threshold)


def ramp(x: Any, negative_slope: float, max_value: float | None, threshold: float) -> Any:
    """Return ``x`` from ``threshold`` to ``max_value``; below ``threshold``, another line."""
    if not threshold and not negative_slope:
        y = ops["relu"](x)
    else:
        x = as_tensor(x)
        # 0 times infinity is not 0
        low = (x - threshold) * negative_slope if negative_slope else ops["zeros_like"](x)
        y = ops["where"](ops["greater"](x, threshold), x, low)
    return y if max_value is None else ops["minimum"](y, max_value)


class LeakyReLU(Configured, saved_as="layers.LeakyReLU"):
    """``x`` where it is positive, otherwise ``negative_slope * x``.

    Parameters
    ----------
    negative_slope
        The slope below 0; 0.3 by default, as in Keras.

    Raises
    ------
    ValueError
        If the slope is negative.

    Examples
    --------
    >>> gt.layers.LeakyReLU(0.5)([-2.0, 4.0]).tolist()
    [-1.0, 4.0]
    """

    keeps_mask = True

    def __init__(
        self,
        negative_slope: float = 0.3,
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        if not negative_slope >= 0:
            raise ValueError(
                f"LeakyReLU: negative_slope must not be negative, got {negative_slope!r}"
            )
        self.negative_slope = float(negative_slope)

    def call(self, x: Any) -> Any:
        """Apply it."""
        return ops["where"](ops["greater"](x, 0), x, x * self.negative_slope)


class ELU(Configured, saved_as="layers.ELU"):
    """``x`` where it is positive, otherwise ``alpha * (exp(x) - 1)``.

    Parameters
    ----------
    alpha
        The limit for small inputs is ``-alpha``; 1 by default.

    Raises
    ------
    TypeError
        If ``alpha`` is not a number.

    Examples
    --------
    >>> gt.layers.ELU()([0.0, 4.0]).tolist()
    [0.0, 4.0]
    """

    keeps_mask = True

    def __init__(
        self, alpha: float = 1.0, name: str | None = None, dtype: Any = None, **rules: Unpack[Rules]
    ) -> None:
        super().__init__(name, dtype, **rules)
        self.alpha = float(alpha)

    def call(self, x: Any) -> Any:
        """Apply it."""
        low = ops["expm1"](ops["minimum"](x, 0)) * self.alpha
        return ops["where"](ops["greater"](x, 0), x, low)


class Softmax(Configured, saved_as="layers.Softmax"):
    """Exponentials divided by their sum.

    Parameters
    ----------
    axis
        The axis along which the results sum to 1, or several axes; the last by default.

    Raises
    ------
    IndexError
        At the call, if the input lacks an axis.

    Examples
    --------
    >>> gt.layers.Softmax()([[0.0, 0.0]]).tolist()
    [[0.5, 0.5]]
    """

    keeps_mask = True
    #: :meth:`compute_mask` passes masks on and makes none.
    makes_mask: ClassVar[bool] = False
    computes_in_float32 = True

    def __init__(
        self, axis: Any = -1, name: str | None = None, dtype: Any = None, **rules: Unpack[Rules]
    ) -> None:
        super().__init__(name, dtype, **rules)
        self.axis = list(axis) if isinstance(axis, Sequence) else axis

    def compute_mask(self, x: Any, mask: Any = None) -> Any:
        """Return the mask of the inputs; warn if padding counts in the sum."""
        return mask_along(self, x, mask, self.axis)

    def call(self, x: Any, mask: Any = None) -> Any:
        """Apply it, leaving out elements for which ``mask`` is false."""
        if mask is not None:
            # not minus infinity: where all are left out, results are equal, and not NaN
            x = ops["where"](mask, x, float(np.finfo(x.dtype).min))
        if not isinstance(self.axis, list):
            return ops["softmax"](x, axis=self.axis)
        axes = tuple(self.axis)
        top = ops["stop_gradient"](ops["max"](x, axis=axes, keepdims=True))
        terms = ops["exp"](x - top)  # less the logsumexp, large inputs would lose their sum
        return terms / ops["sum"](terms, axis=axes, keepdims=True)


def _slopes(layer: PReLU, array: Any) -> Any:
    """Return slopes that PyTorch keeps by channel: one for each, or one for all."""
    shared = len(layer.shared_axes or ())
    ones = max(shared - (array.size == 1), 0)
    shape = layer.alpha.shape if layer.built else (1,) * ones + array.shape
    if array.size == max(shape, default=1) == prod(shape):
        return array.reshape(shape)
    return np.broadcast_to(array, shape)


def _by_channel(layer: PReLU, alpha: Any) -> Any:
    if max(alpha.shape, default=1) != alpha.size:
        raise ValueError(
            f"in PyTorch, slopes are shared by all axes but one; here their shape is {alpha.shape}"
        )
    return alpha.reshape(-1)


class PReLU(Configured, saved_as="layers.PReLU"):
    """``x`` where it is positive, otherwise ``alpha * x`` with weights ``alpha``.

    Parameters
    ----------
    alpha_initializer
        A name, an object of :mod:`gradtape.layers.initializers`, or a function of shape and dtype;
        ``"zeros"`` by default.
    shared_axes
        Axes along which all elements share their weights, such as rows and columns: 1, 2.
    rules
        ``alpha_regularizer``, ``activity_regularizer`` and constraints: as for :class:`Dense`.

    Attributes
    ----------
    alpha : Variable
        Shape of an example, with 1 along shared axes; created at the first call.

    Raises
    ------
    ValueError
        At the call, if the size of an axis that is not shared is unknown.

    References
    ----------
    K. He, X. Zhang, S. Ren and J. Sun, "Delving Deep into Rectifiers", ICCV 2015.

    Examples
    --------
    >>> gt.layers.PReLU("ones")([[-2.0, 4.0]]).tolist()
    [[-2.0, 4.0]]
    """

    keeps_mask = True

    names_elsewhere: ClassVar[Elsewhere] = {
        "pytorch": {"alpha": ("weight", (_slopes, _by_channel))}
    }
    alpha: Variable
    ruled: ClassVar[Mapping[str, str]] = {"alpha": "alpha"}

    def __init__(
        self,
        alpha_initializer: Any = "zeros",
        shared_axes: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        self.alpha_initializer = initializers.get(alpha_initializer)
        given = shared_axes if isinstance(shared_axes, Sequence) else [shared_axes]
        self.shared_axes = None if shared_axes is None else list(given)

    @property
    def weight_names(self) -> tuple[str, ...]:
        """The slopes."""
        return ("alpha",)

    def shape_for_weights(self, shapes: Mapping[str, tuple[int, ...]]) -> Any:
        """Return the input shape for these slopes."""
        return (None, *shapes["alpha"]) if "alpha" in shapes else None

    def build(self, input_shape: Any) -> None:
        """Create the slopes."""
        shared = self.shared_axes or ()
        rank = len(input_shape or ())
        shape = tuple(1 if i in shared else self.known(input_shape, i) for i in range(1, rank))
        self.alpha = self.add_weight(shape, self.alpha_initializer, "alpha")

    def call(self, x: Any) -> Any:
        """Apply it."""
        shared, sizes = self.shared_axes or (), self.alpha.shape
        shape = x.array.shape
        if shape is None or len(shape) != len(sizes) + 1:
            raise ValueError(
                f"layer {self.name!r} (PReLU): expected {len(sizes)} axes besides the batch, got "
                f"an input of shape {shape}"
            )
        x = self.fitted(x, {i: n for i, n in enumerate(sizes, 1) if i not in shared})
        return ops["where"](ops["greater"](x, 0), x, x * self.alpha.value)
