"""Layers that normalise each example with its own statistics."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Unpack

from ..core.extend import Variable, ops
from ..nn import group_normalization, layer_normalization
from . import initializers
from .base.configured import Configured, positive
from .base.layer import Elsewhere
from .base.masks import mask_along
from .base.weights import Rules

__all__ = [
    "GroupNormalization",
    "LayerNormalization",
    "RMSNormalization",
    "UnitNormalization",
]


def _axes(layer: Any, axis: Any) -> Any:
    """Return an axis, or a list of them, as integers."""
    if isinstance(axis, Sequence):
        return [operator.index(a) for a in axis]
    if not hasattr(axis, "__index__"):
        raise ValueError(
            f"{type(layer).__name__}: axis must be one integer or several, got {axis!r}"
        )
    return operator.index(axis)


class _Scaled(Configured):
    """Base class of layers with a factor, and perhaps an offset, along the normalised axes."""

    keeps_mask = True
    #: :meth:`compute_mask` passes masks on and makes none.
    makes_mask: ClassVar[bool] = False
    computes_in_float32 = True

    gamma: Variable | None = None
    beta: Variable | None = None

    def _wanted(self) -> tuple[str, ...]:
        raise NotImplementedError

    def compute_mask(self, x: Any, mask: Any = None) -> Any:
        """Return the mask of the inputs; warn if padding counts in what they are divided by."""
        return mask_along(self, x, mask, getattr(self, "axis", -1))

    def _weights_of(self, input_shape: Any) -> tuple[int, ...]:
        """Return the weights' shape."""
        raise NotImplementedError

    @property
    def weight_names(self) -> tuple[str, ...]:
        """``gamma`` and ``beta``, as far as the layer has them."""
        return self._wanted()

    def build(self, input_shape: Any) -> None:
        """Create the weights."""
        shape = self._weights_of(input_shape)
        for name in self._wanted():
            kind = getattr(self, f"{name}_initializer", "ones")
            setattr(self, name, self.add_weight(shape, kind, name))

    def shape_for_weights(self, shapes: Mapping[str, tuple[int, ...]]) -> Any:
        """Return an input shape that has these sizes along the axes."""
        axis = getattr(self, "axis", -1)
        axes = sorted(axis if isinstance(axis, list) else [axis])
        shape = next(iter(shapes.values()), ())
        if len(shape) != len(axes) or axes[0] < 0 <= axes[-1]:
            return None
        sizes: list[int | None] = [None] * (axes[-1] + 1 if axes[0] >= 0 else -axes[0])
        for a, n in zip(axes, shape):
            sizes[a] = n
        return tuple(sizes)

    def fit(self, x: Any, axes: Any) -> Any:
        """Return the inputs, checked against the sizes of the weights."""
        weight = self.beta if self.gamma is None else self.gamma
        if weight is None:
            return x
        given = axes if isinstance(axes, list) else [axes]
        if x.array.shape is None:
            if given != [-1]:
                raise ValueError(
                    f"layer {self.name!r} ({type(self).__name__}): with axis={axes}, the rank of "
                    "its input must be known; use axis=-1 or a TensorSpec with a rank"
                )
            return x
        rank = len(x.array.shape)
        order = sorted(given, key=lambda a: a % rank)
        return self.fitted(x, dict(zip(order, weight.shape)))

    def _applied(self, y: Any, axes: Any) -> Any:
        """Multiply by the factor and add the offset, along the axes of the weights."""
        given = axes if isinstance(axes, list) else [axes]
        for name, op in (("gamma", "multiply"), ("beta", "add")):
            weight = getattr(self, name)
            if weight is None:
                continue
            value = weight.value
            if given == [-1]:
                y = ops[op](y, value)
                continue
            along = sorted(a % y.ndim for a in given)
            if along != list(range(y.ndim - len(along), y.ndim)):
                shape = [1] * y.ndim
                for a, n in zip(along, weight.shape):
                    shape[a] = n
                value = ops["reshape"](value, shape=tuple(shape))
            y = ops[op](y, value)
        return y

    def _sizes(self, input_shape: Any, axes: Any) -> tuple[int, ...]:
        given = axes if isinstance(axes, list) else [axes]
        rank = 0 if input_shape is None else len(input_shape)
        for a in given:
            self.known(input_shape, a)
        return tuple(self.known(input_shape, a) for a in sorted(a % rank for a in given))


class LayerNormalization(_Scaled, saved_as="layers.LayerNormalization"):
    """Normalise each example with its own mean and variance.

    Parameters
    ----------
    axis
        The axis or axes over which each example is normalised, the last by default.
    epsilon
        Added to the variance (divided by n), inside the square root; 0.001 by default.
    center
        Whether to add ``beta``; true by default.
    scale
        Whether to multiply by ``gamma``; true by default.
    beta_initializer, gamma_initializer
        Names, objects of :mod:`gradtape.layers.initializers`, or functions of shape and dtype.
    rules
        ``gamma_regularizer``, ``beta_regularizer``, ``activity_regularizer``, and constraints: as
        for :class:`Dense`.

    Attributes
    ----------
    gamma, beta : Variable or None
        The sizes of the normalised axes; initially 1 and 0.

    Raises
    ------
    ValueError
        If a setting is out of its range. At the call, if the input lacks an axis.

    References
    ----------
    J. L. Ba, J. R. Kiros and G. E. Hinton, "Layer Normalization", 2016.

    Examples
    --------
    >>> layer = gt.layers.LayerNormalization(epsilon=0.0)
    >>> layer([[1.0, 3.0], [10.0, 30.0]]).tolist()
    [[-1.0, 1.0], [-1.0, 1.0]]
    """

    names_elsewhere: ClassVar[Elsewhere] = {
        "pytorch": {"gamma": ("weight", None), "beta": ("bias", None)},
    }
    ruled: ClassVar[Mapping[str, str]] = {"gamma": "gamma", "beta": "beta"}
    defaults_elsewhere: ClassVar[Mapping[str, Mapping[str, Any]]] = {"pytorch": {"epsilon": 1e-5}}

    def __init__(
        self,
        axis: Any = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        self.axis = _axes(self, axis)
        self.epsilon = _small(self, epsilon)
        self.center, self.scale = bool(center), bool(scale)
        self.beta_initializer = initializers.get(beta_initializer)
        self.gamma_initializer = initializers.get(gamma_initializer)

    def _wanted(self) -> tuple[str, ...]:
        return ("gamma",) * self.scale + ("beta",) * self.center

    def _weights_of(self, input_shape: Any) -> tuple[int, ...]:
        return self._sizes(input_shape, self.axis)

    def call(self, x: Any) -> Any:
        """Normalise ``x``."""
        x = self.fit(x, self.axis)
        axis = tuple(self.axis) if isinstance(self.axis, list) else self.axis
        return self._applied(layer_normalization(x, axis=axis, epsilon=self.epsilon), self.axis)


class RMSNormalization(_Scaled, saved_as="layers.RMSNormalization"):
    """Divide each example by its root mean square.

    Parameters
    ----------
    axis
        The axis or axes over which the mean is taken, the last by default.
    epsilon
        Added to the mean, inside the square root; 1e-6 by default.
    scale
        Whether to multiply by ``gamma``; true by default.

    Attributes
    ----------
    gamma : Variable or None
        The sizes of the normalised axes; initially 1.

    Raises
    ------
    ValueError
        If a setting is out of its range. At the call, if the input lacks an axis.

    References
    ----------
    B. Zhang and R. Sennrich, "Root Mean Square Layer Normalization", NeurIPS 2019.

    Examples
    --------
    >>> gt.layers.RMSNormalization(epsilon=0.0)([[3.0, 3.0]]).tolist()
    [[1.0, 1.0]]
    """

    _gradtape_internal = "beta"

    names_elsewhere: ClassVar[Elsewhere] = {
        "pytorch": {"gamma": ("weight", None)},
        "keras": {"": ("rms_normalization", None)},
    }

    def __init__(
        self,
        axis: Any = -1,
        epsilon: float = 1e-6,
        scale: bool = True,
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        self.axis, self.epsilon, self.scale = _axes(self, axis), _small(self, epsilon), bool(scale)

    def _wanted(self) -> tuple[str, ...]:
        return ("gamma",) * self.scale

    def _weights_of(self, input_shape: Any) -> tuple[int, ...]:
        return self._sizes(input_shape, self.axis)

    def call(self, x: Any) -> Any:
        """Divide ``x``."""
        x = self.fit(x, self.axis)
        axis = tuple(self.axis) if isinstance(self.axis, list) else self.axis
        squares = ops["mean"](x * x, axis=axis, keepdims=True)
        return self._applied(x / ops["sqrt"](squares + self.epsilon), self.axis)


class GroupNormalization(_Scaled, saved_as="layers.GroupNormalization"):
    """Normalise groups of channels of each example with their mean and variance.

    Parameters
    ----------
    groups
        The number of groups, 32 by default; -1 makes each channel a group.
    axis
        The axis of the channels, the last by default.
    epsilon
        Added to the variance (divided by n), inside the square root; 0.001 by default.
    center
        Whether to add ``beta``; true by default.
    scale
        Whether to multiply by ``gamma``; true by default.
    beta_initializer, gamma_initializer
        Names, objects of :mod:`gradtape.layers.initializers`, or functions of shape and dtype.
    rules
        ``gamma_regularizer``, ``beta_regularizer``, ``activity_regularizer``, and constraints: as
        for :class:`Dense`.

    Attributes
    ----------
    gamma, beta : Variable or None
        Shape ``(channels,)``, initially 1 and 0.

    Raises
    ------
    ValueError
        If a setting is out of its range. At the call, if the channels do not divide into
        the groups.

    References
    ----------
    Y. Wu and K. He, "Group Normalization", ECCV 2018.

    Examples
    --------
    >>> gt.layers.GroupNormalization(2, epsilon=0.0)([[1.0, 3.0, 10.0, 30.0]]).tolist()
    [[-1.0, 1.0, -1.0, 1.0]]
    """

    names_elsewhere: ClassVar[Elsewhere] = {
        "pytorch": {"gamma": ("weight", None), "beta": ("bias", None)},
    }
    ruled: ClassVar[Mapping[str, str]] = {"gamma": "gamma", "beta": "beta"}
    defaults_elsewhere: ClassVar[Mapping[str, Mapping[str, Any]]] = {"pytorch": {"epsilon": 1e-5}}

    def __init__(
        self,
        groups: int = 32,
        axis: int = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        self.groups = -1 if groups == -1 else positive(self, groups=groups)[0]
        self.axis = operator.index(axis)
        self.epsilon = _small(self, epsilon)
        self.center, self.scale = bool(center), bool(scale)
        self.beta_initializer = initializers.get(beta_initializer)
        self.gamma_initializer = initializers.get(gamma_initializer)

    def _wanted(self) -> tuple[str, ...]:
        return ("gamma",) * self.scale + ("beta",) * self.center

    def _weights_of(self, input_shape: Any) -> tuple[int, ...]:
        return (self.known(input_shape, self.axis),)

    def compute_mask(self, x: Any, mask: Any = None) -> Any:
        """Return the mask of the inputs; warn, as padding counts in mean and variance."""
        return mask_along(self, x, mask, 1)

    def call(self, x: Any) -> Any:
        """Normalise ``x``."""
        x = self.fit(x, self.axis)
        last = self.axis == -1
        x = x if last else ops["moveaxis"](x, source=self.axis, destination=-1)
        groups = x.shape[-1] if self.groups == -1 else self.groups
        y = self._applied(group_normalization(x, groups, epsilon=self.epsilon), -1)
        return y if last else ops["moveaxis"](y, source=-1, destination=self.axis)


class UnitNormalization(Configured, saved_as="layers.UnitNormalization"):
    """Divide each example by its Euclidean norm.

    Parameters
    ----------
    axis
        The axis or axes over which the norm is taken, the last by default.

    Raises
    ------
    ValueError
        If ``axis`` is neither an integer nor a sequence of them. At the call, if the input lacks an
        axis.

    Examples
    --------
    >>> [round(v, 3) for v in gt.layers.UnitNormalization()([[3.0, 4.0]]).numpy()[0].tolist()]
    [0.6, 0.8]
    """

    keeps_mask = True
    #: :meth:`compute_mask` passes masks on and makes none.
    makes_mask: ClassVar[bool] = False
    computes_in_float32 = True

    def __init__(
        self, axis: Any = -1, name: str | None = None, dtype: Any = None, **rules: Unpack[Rules]
    ) -> None:
        super().__init__(name, dtype, **rules)
        self.axis = _axes(self, axis)

    def compute_mask(self, x: Any, mask: Any = None) -> Any:
        """Return the mask of the inputs; warn if padding counts in the norm."""
        return mask_along(self, x, mask, self.axis)

    def call(self, x: Any) -> Any:
        """Divide ``x``."""
        axis = tuple(self.axis) if isinstance(self.axis, list) else self.axis
        # squares of large numbers overflow; the norm does not
        return x / ops["maximum"](ops["norm"](x, axis=axis, keepdims=True), 1e-6)


def _small(layer: Any, epsilon: float) -> float:
    if not epsilon >= 0.0:
        raise ValueError(f"{type(layer).__name__}: epsilon must not be negative, got {epsilon!r}")
    return float(epsilon)
