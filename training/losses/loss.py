"""``Loss``, the base class; and what losses say of themselves and check of their inputs.

A cross-entropy says which labels it takes, and whether predictions are logits. A decorator brings
labels and predictions to one shape.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from functools import wraps
from math import inf
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from ...core.extend import Tensor, complete_docstring, in_precision, ops, snake_case
from ...layers import mask_of, with_own_arguments
from ..names import returned
from ..shapes import alike, mask_weights, mean_of_counted, weights_like

__all__ = ["Loss"]

#: The results of calls, with the numbers of values in their means; None outside training.
_COUNTS: ContextVar[list[tuple[Tensor, Tensor | None]] | None] = ContextVar("counts", default=None)
_REDUCTIONS = ("sum_over_batch_size", "mean", "sum", "none", None)


class Loss:
    """Base class of losses: ``call(y_true, y_pred)`` returns a value per example.

    Override ``call``. An overridden ``__call__`` may return what ``super().__call__`` returns; from
    any other number, an epoch's loss is a mean over examples, also if some values are padding.

    Parameters
    ----------
    reduction
        How to combine these values: ``"sum_over_batch_size"`` or ``"mean"`` for their mean,
        ``"sum"``, or ``"none"``.
    name
        A name for histories; the class name in snake case by default.

    Raises
    ------
    ValueError
        If the reduction is unknown.

    Examples
    --------
    >>> class Fourth(gt.training.losses.Loss):
    ...     def call(self, y_true, y_pred):
    ...         return gt.mean((y_true - y_pred) ** 4, axis=-1)
    >>> Fourth("sum")(gt.ones((2, 3)), gt.zeros((2, 3))).item()
    2.0
    """

    _gradtape_internal = "by_example counted function reduced"
    _gradtape_hooks = "call get_config"

    def __init__(
        self, reduction: str | None = "sum_over_batch_size", name: str | None = None
    ) -> None:
        kind = type(self).__name__
        if reduction is not None and not isinstance(reduction, str):
            raise TypeError(
                f"{kind}: reduction must be one of {_REDUCTIONS}, got {type(reduction).__name__}; "
                f"a loss is made first and then called: {kind}()(y_true, y_pred)"
            )
        if reduction not in _REDUCTIONS:
            raise ValueError(f"{kind}: reduction must be one of {_REDUCTIONS}, got {reduction!r}")
        self.name = name or snake_case(kind)
        self.__name__ = self.name
        self.reduction = reduction

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return with_own_arguments(self, Loss, {"reduction": self.reduction, "name": self.name})

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Return a loss, constructed from what :meth:`get_config` returned."""
        return cls(**config)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Return a value per example.

        Parameters
        ----------
        y_true, y_pred
            Labels and predictions of a batch, as the caller passed them. ``fit`` passes tensors.

        Returns
        -------
        Tensor
            The values, of shape ``(batch,)``, or with further axes such as time steps.
        """
        raise NotImplementedError(f"{type(self).__name__}: define call(y_true, y_pred)")

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Tensor:
        """Return the reduced loss.

        Parameters
        ----------
        y_true, y_pred
            Labels and predictions.
        sample_weight
            A factor for each example's value. The mean still divides by the number of values. If
            the predictions have a mask, because a layer of the model masks padding, padding counts
            neither in the sum nor in that number.

        Returns
        -------
        Tensor
            A scalar, or the values of :meth:`call` with ``reduction="none"``; at least ``float32``.
        """
        value, count = self.reduced(y_true, y_pred, sample_weight, self.reduction)
        noted = _COUNTS.get()
        if noted is not None:
            noted.append((value, count))
        return value

    def reduced(
        self, y_true: Any, y_pred: Any, sample_weight: Any, reduction: str | None
    ) -> tuple[Tensor, Tensor | None]:
        """Return the loss with a reduction, and the number of values in its mean.

        An epoch's loss weights the means of batches by these numbers. They are None if all values
        count, and for other reductions.
        """
        values = in_precision(returned(self.call(y_true, y_pred), self), "float32")
        counted = self.counted(y_true, y_pred, values)
        if reduction in ("sum_over_batch_size", "mean"):
            return mean_of_counted(values, counted, sample_weight)
        for weight in (sample_weight, counted):
            values = values if weight is None else values * weights_like(weight, values)
        return (ops["sum"](values) if reduction == "sum" else values), None

    def counted(self, y_true: Any, y_pred: Any, values: Tensor) -> Any:
        """Return 1 for values that count and 0 for others, such as padding; None if all count."""
        return mask_weights(mask_of(y_pred), values, None, self.name)


def counted_call(loss: Callable[..., Any], *args: Any, **given: Any) -> tuple[Any, Tensor | None]:
    """Return what a loss returns, and the number of values in that mean, if :class:`Loss` took it.

    The number is None if all values count, or another mean was returned.
    """
    noted: list[tuple[Tensor, Tensor | None]] = []
    token = _COUNTS.set(noted)
    try:
        value = loss(*args, **given)
    finally:
        _COUNTS.reset(token)
    return value, next((count for known, count in noted if known is value), None)


# -- kinds of labels ------------------------------------------------------------------------------

_LABELS = ("binary", "categorical", "sparse")
Function = TypeVar("Function", bound=Callable[..., Any])


def takes_labels(kind: str) -> Callable[[Function], Function]:
    """Mark a loss as a cross-entropy of ``kind``: its attribute ``label_kind``."""

    def mark(function: Function) -> Function:
        function.label_kind = kind  # type: ignore[attr-defined]
        return function

    return mark


class Kind(NamedTuple):
    """A cross-entropy: its labels, and whether its predictions are logits.

    Attributes
    ----------
    name
        The function's name.
    classes
        ``"binary"``, ``"categorical"`` (one-hot labels) or ``"sparse"``.
    from_logits
        Whether predictions are logits; otherwise they are probabilities.
    axis
        The axis of the classes.
    """

    name: str
    classes: str
    from_logits: bool
    axis: int


def kind_of(loss: Any) -> Kind | None:
    """Return the kind of a cross-entropy, however wrapped; ``None`` for other losses.

    A loss says what it is. Its attribute ``label_kind`` is ``"binary"``, ``"categorical"`` or
    ``"sparse"``; its parameters, settings or attributes ``from_logits`` (true by default) and
    ``axis`` (-1) say what its predictions are.

    Parameters
    ----------
    loss
        A function, a ``functools.partial`` of one, or a loss object.
    """
    for level, given in _levels(loss):
        labels = getattr(level, "label_kind", None)
        if not isinstance(labels, str) or labels not in _LABELS:
            continue
        known: dict[str, Any] = {"from_logits": True, "axis": -1}
        with suppress(TypeError, ValueError):  # a callable without a signature
            parameters = inspect.signature(level).parameters
            defaults = {name: parameters[name].default for name in known if name in parameters}
            known |= {name: x for name, x in defaults.items() if x is not inspect.Parameter.empty}
        known |= {name: getattr(level, name) for name in known if hasattr(level, name)}
        known |= {name: given[name] for name in known if name in given}
        name = getattr(level, "__name__", type(level).__name__)
        return Kind(name, labels, bool(known["from_logits"]), int(known["axis"]))
    return None


def label_range(loss: Any) -> tuple[float, float] | None:
    """Return the smallest and the largest label of a loss, however wrapped; None if unknown.

    They are its attribute ``label_range``.
    """
    limits = [getattr(level, "label_range", None) for level, _ in _levels(loss)]
    return next((each for each in limits if each is not None), None)


def _levels(loss: Any) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield a loss and the functions that it calls, each with the settings that it gets."""
    settings: dict[str, Any] = {}
    while True:
        yield loss, settings
        if isinstance(loss, functools.partial):
            settings = {**loss.keywords, **settings}
            loss = loss.func
        elif isinstance(loss, Loss) and hasattr(loss, "function"):
            settings = {**vars(loss).get("settings", {}), **settings}
            loss = loss.function
        elif hasattr(loss, "__wrapped__"):
            loss = loss.__wrapped__
        else:
            return


# -- shapes and ranges of labels ------------------------------------------------------------------

_SHARED = """
Parameters
----------
y_true, y_pred
    Tensors of one shape ``(..., n)``, as for :func:`mean_squared_error`.
from_logits
    Whether ``y_pred`` are logits; true by default, unlike in Keras.

Returns
-------
A tensor of shape ``(...)``.

Raises
------
ValueError
    If the shapes differ, or the loss does not take a label.
"""


def of_one_shape(
    columns: bool = True, like: Any = None, labels: tuple[float, float] | None = None
) -> Callable[[Function], Function]:
    """Return a decorator that gives a loss labels and predictions of one shape.

    It also completes the docstring of the loss.

    Parameters
    ----------
    columns
        Whether a vector and a column count as one shape; not if the last axis holds classes.
    like
        A loss whose parameters, results and errors complete the docstring.
    labels
        The smallest and the largest label, if there are such; the attribute ``label_range`` of the
        loss. ``fit`` checks all labels, also for a function of your own with this attribute.
    """
    texts = () if like is None else ((like.__doc__ or "").partition("\nNotes\n")[0],)

    def decorated(function: Function) -> Function:
        if labels is not None:
            function.label_range = labels  # type: ignore[attr-defined]

        @wraps(function)
        def loss(y_true: Any, y_pred: Any, *args: Any, **settings: Any) -> Any:
            y_true, y_pred = alike(function.__name__, y_true, y_pred, columns)
            if labels is not None and type(y_true.array) is np.ndarray:
                text = labels_beyond(labels, y_true.array)
                if text:
                    raise ValueError(f"{function.__name__}: labels {text}")
            return function(y_true, y_pred, *args, **settings)

        complete_docstring(loss, *texts, _SHARED)
        return loss  # type: ignore[return-value]

    return decorated


#: How far rounding may take a label out of its range.
_ROUNDING = 1e-5


def labels_beyond(limits: tuple[float, float] | None, values: Any) -> str:
    """Return what is wrong with labels that are not in a range; empty if nothing is."""
    if limits is None or not values.size or values.dtype.kind not in "iuf":
        return ""
    low, high = np.minimum.reduce(values, None), np.maximum.reduce(values, None)
    below, above = low < limits[0] - _ROUNDING, high > limits[1] + _ROUNDING
    if not (below or above):  # both are false for NaN, which other checks report
        return ""
    wanted = "shares of classes, from 0" if limits[1] == inf else "from {:g} to {:g}"
    text = f"must be {wanted.format(*limits)}, got {low} to {high}"
    return f"{text}; divide a mask by 255" if (low, high) == (0, 255) else text
