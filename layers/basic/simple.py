"""Layers without weights: activations, flattening, scaling, functions, masks and penalties."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from math import isnan, prod
from typing import Any, ClassVar, Unpack

import numpy as np

from ...core.extend import GradientTape, Op, as_tensor, is_open, known_size, ops
from .. import activations, regularizers
from ..base.calls import in_floats
from ..base.configured import Configured
from ..base.layer import Layer
from ..base.weights import Rules

__all__ = [
    "Activation",
    "ActivityRegularization",
    "Flatten",
    "Identity",
    "Lambda",
    "Masking",
    "Rescaling",
]


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


# -- functions, masks and penalties ---------------------------------------------------------------


class Lambda(Layer):
    """Any function of tensors as a layer.

    Parameters
    ----------
    function
        A function of a tensor, or of a list of them, written with gradtape's functions. It may also
        take ``mask`` and ``training``.
    output_shape
        Ignored: the shape of the result is that of the function's result.
    mask
        The mask of the result, or a function ``mask(inputs, mask)`` that returns it; none by
        default.
    arguments
        Keyword arguments for the function.
    name
        A Python identifier.
    dtype
        A precision policy.
    rules
        ``activity_regularizer``, a penalty of the output, which adds to the loss.

    Raises
    ------
    TypeError
        If ``function`` cannot be called.
    ValueError
        At the first call, if the function uses a variable. The variable would not be part of the
        layer, and would not be trained. Write your own :class:`Layer` instead.

    Notes
    -----
    A file holds the graph of the function, never its code. It loads as a module that runs the
    graph. In a model of placeholders, functions and ops need no ``Lambda``.

    Examples
    --------
    >>> gt.layers.Lambda(lambda x, k: x**k, arguments={"k": 2})([1.0, 3.0]).tolist()
    [1.0, 9.0]
    """

    def __init__(
        self,
        function: Callable[..., Any],
        output_shape: Any = None,
        mask: Any = None,
        arguments: Mapping[str, Any] | None = None,
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        if not callable(function):
            raise TypeError(f"Lambda: expected a function, got {function!r}")
        takes = inspect.signature(function).parameters
        # hidden from files: graphs have what comes of it
        self._gradtape_lambda = function, mask, dict(arguments or {})
        self._gradtape_takes = tuple(x for x in ("mask", "training") if x in takes)
        self._gradtape_looked_at: set[Any] = set()

    @property
    def makes_mask(self) -> bool:
        """Whether the result has its own mask."""
        return self._gradtape_lambda[1] is not None

    def compute_mask(self, x: Any, mask: Any = None) -> Any:
        """Return the mask of the result."""
        own = self._gradtape_lambda[1]
        return own(x, mask) if callable(own) else own

    def call(self, x: Any, mask: Any = None, training: bool = False) -> Any:
        """Call the function."""
        function, _, arguments = self._gradtape_lambda
        told = {"mask": mask, "training": training}
        given = {**{name: told[name] for name in self._gradtape_takes}, **arguments}
        if training in self._gradtape_looked_at:
            return function(x, **given)
        with GradientTape() as tape:
            y = function(x, **given)
        for variable in tape.watched_variables():
            raise ValueError(
                f"layer {self.name!r} (Lambda): its function uses the variable {variable.name!r}, "
                "which would not be part of the layer, nor be trained; write a "
                "gradtape.layers.Layer that has it as an attribute"
            )
        self._gradtape_looked_at.add(training)
        return y

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        function, mask, arguments = self._gradtape_lambda
        return {
            **super().get_config(), "function": function, "mask": mask, "arguments": arguments,
        }  # fmt: skip


class Masking(Configured, saved_as="layers.Masking"):
    """Mask steps in which all elements equal one number: padding.

    Parameters
    ----------
    mask_value
        The number, 0 by default; it may be NaN.

    Raises
    ------
    TypeError
        If ``mask_value`` is not a number.

    Notes
    -----
    The result is 0 in these steps. In a model, the layers after this one skip them. Elsewhere, pass
    the result of :meth:`compute_mask` to layers as ``mask=``.

    Examples
    --------
    >>> layer = gt.layers.Masking(-1.0)
    >>> x = gt.constant([[[1.0, -1.0], [-1.0, -1.0]]])
    >>> layer(x).tolist()
    [[[1.0, -1.0], [0.0, 0.0]]]
    >>> layer.compute_mask(x).tolist()
    [[True, False]]
    """

    takes_integers = True

    #: :meth:`compute_mask` is asked in models.
    makes_mask: ClassVar[bool] = True

    def __init__(
        self,
        mask_value: float = 0.0,
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        self.mask_value = float(mask_value)

    def compute_mask(self, x: Any, mask: Any = None) -> Any:
        """Return where steps are not padding."""
        return self._seen(as_tensor(x), False)

    def call(self, x: Any) -> Any:
        """Set padding steps to 0."""
        return ops["where"](self._seen(x, True), x, 0)

    def _seen(self, x: Any, keepdims: bool) -> Any:
        if isnan(self.mask_value):  # NaN equals nothing
            differ = ops["logical_not"](ops["isnan"](x))
        else:
            differ = ops["not_equal"](x, self.mask_value)
        return ops["any"](differ, axis=-1, keepdims=keepdims)


class Identity(Configured, saved_as="layers.Identity"):
    """Return the inputs unchanged.

    Parameters
    ----------

    Raises
    ------
    ValueError
        If ``name`` is not an identifier.

    Examples
    --------
    >>> gt.layers.Identity()([1.0, 2.0]).tolist()
    [1.0, 2.0]
    """

    takes_integers = True
    keeps_mask = True
    takes_one = False

    def __init__(self, name: str | None = None, dtype: Any = None, **rules: Unpack[Rules]) -> None:
        super().__init__(name, dtype, **rules)

    def call(self, x: Any) -> Any:
        """Return ``x``."""
        return x


class ActivityRegularization(Configured, saved_as="layers.ActivityRegularization"):
    """Return the inputs, and add their absolute values and squares to the loss.

    Parameters
    ----------
    l1, l2
        The factors of the sums of absolute values and of squares, averaged over examples; 0 by
        default.

    Raises
    ------
    ValueError
        If a factor is negative or not finite.

    Examples
    --------
    >>> layer = gt.layers.ActivityRegularization(l1=0.5)
    >>> y = layer([[1.0, -3.0]])
    >>> [loss.item() for loss in layer.losses]
    [2.0]
    """

    keeps_mask = True

    def __init__(
        self, l1: float = 0.0, l2: float = 0.0, name: str | None = None, dtype: Any = None
    ) -> None:
        super().__init__(name, dtype)
        self.activity_regularizer = regularizers.L1L2(l1, l2)

    def rules_given(self) -> dict[str, Any]:
        """Return nothing: the regularizer is made from ``l1`` and ``l2``."""
        return {}

    @property
    def l1(self) -> float:
        """The factor of the sum of absolute values."""
        return float(self.activity_regularizer.l1)

    @property
    def l2(self) -> float:
        """The factor of the sum of squares."""
        return float(self.activity_regularizer.l2)

    def call(self, x: Any) -> Any:
        """Return ``x``."""
        return x
