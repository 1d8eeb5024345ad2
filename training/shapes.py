"""Brings labels, predictions and weights to matching shapes; means over one value per example."""

from __future__ import annotations

import warnings
from typing import Any

from ..core.extend import (
    Tensor,
    as_tensor,
    functions,
    in_precision,
    ops,
    same_shape,
    same_size,
    shapes_differ,
    sizes_differ,
    with_each_other,
    with_others,
)
from .names import name_of

__all__ = [
    "EPSILON",
    "InOneRank",
    "alike",
    "check_several",
    "checked",
    "classes_of",
    "column_dropped",
    "in_columns",
    "mask_weights",
    "mean_of",
    "mean_of_counted",
    "of_one_rank",
    "ratio",
    "spread",
    "weights_like",
]

#: The distance that probabilities and divisors keep from 0; Keras's value.
EPSILON = 1e-7


def alike(name: str, y_true: Any, y_pred: Any, columns: bool = True) -> tuple[Tensor, Tensor]:
    """Return labels and predictions as real tensors of one shape.

    A last axis of size 1 that only one of them has is dropped, so that a column of predictions
    matches a vector of labels. With ``columns=False`` it is not: the last axis holds classes then.
    Integer and boolean labels take the dtype of the predictions; such predictions become float64.
    float16 becomes float32, in which losses are summed.
    """
    y_true, y_pred = (in_precision(y, "float32") for y in with_each_other((y_true, y_pred)))
    if y_pred.dtype.kind in "biu":
        y_pred = y_pred.astype("float64")
    if y_true.dtype.kind in "biu":
        y_true = y_true.astype(y_pred.dtype)
    if "c" in (y_true.dtype.kind, y_pred.dtype.kind):
        raise TypeError(
            f"{name}: labels and predictions must be real, got {y_true.dtype} and {y_pred.dtype}; "
            "give the real and imaginary parts, or the absolute value of the difference"
        )
    if columns:
        y_true, y_pred = column_dropped(y_true, y_pred.shape), column_dropped(y_pred, y_true.shape)
    return checked(name, y_true, y_pred), y_pred


def checked(name: str, y_true: Tensor, y_pred: Tensor) -> Tensor:
    """Return the labels; raise if their shape is not that of the predictions.

    If sizes are unknown in a trace, the graph checks them in each run.
    """
    a, b = y_true.shape, y_pred.shape
    if a is None or b is None or same_shape(a, b):
        return y_true
    message = f"{name}: y_true has shape {a}, y_pred has shape {b}; give both the same shape"
    if shapes_differ(a, b):
        raise ValueError(message)
    for fits in [n == m for n, m in zip(a, b)]:
        if fits is not True:
            y_true = ops["size_checked"](y_true, condition=fits, message=message)
    return y_true


def of_one_rank(y_true: Any, y_pred: Any) -> tuple[Tensor, Tensor]:
    """Return labels and predictions with the same rank, if they differ by a last axis of size 1.

    A vector becomes a column if the other one is a column, so that there is a value for each
    example. With higher ranks, the axis is dropped. Keras does the same.
    """
    y_true, y_pred = with_each_other((y_true, y_pred))
    a, b = y_true.shape, y_pred.shape
    if a is None or b is None:
        return y_true, y_pred
    if len(a) == len(b) + 1:
        y_pred, y_true = _of_one_rank(y_pred, y_true)
    elif len(b) == len(a) + 1:
        y_true, y_pred = _of_one_rank(y_true, y_pred)
    return y_true, y_pred


def spread(y_true: Any, y_pred: Any, broadcast: bool = True) -> tuple[Tensor, Tensor]:
    """Return labels and predictions of one rank and floating dtype, broadcast to one shape."""
    y_true, y_pred = with_each_other((y_true, y_pred))
    if y_pred.dtype.kind in "biu":
        y_pred = y_pred.astype("float32")
    if y_true.dtype != y_pred.dtype:
        y_true = y_true.astype(y_pred.dtype)
    y_true, y_pred = of_one_rank(y_true, y_pred)
    a, b = y_true.shape, y_pred.shape
    if not broadcast or a is None or b is None or same_shape(a, b):
        return y_true, y_pred
    both: tuple[Tensor, Tensor] = functions["broadcast_arrays"](y_true, y_pred)
    return both


class InOneRank:
    """Wraps a function of labels and predictions, which then gets them with the same rank.

    Raises
    ------
    TypeError
        If ``function`` is not a function.
    """

    def __init__(self, function: Any) -> None:
        if not callable(function) or isinstance(function, type):
            raise TypeError(f"expected a function of labels and predictions, got {function!r}")
        self.__wrapped__ = function
        self.__name__ = name_of(function)

    def __call__(self, y_true: Any, y_pred: Any) -> Any:
        return self.__wrapped__(*of_one_rank(y_true, y_pred))


def in_columns(y_true: Any, y_pred: Any) -> tuple[Tensor, Tensor]:
    """Return labels and predictions of the same rank, with vectors as columns.

    A function that takes the mean over the last axis then returns a value for each example.
    """
    y_true, y_pred = of_one_rank(y_true, y_pred)
    if y_true.ndim == y_pred.ndim == 1:
        y_true, y_pred = [ops["expand_dims"](x, axis=-1) for x in (y_true, y_pred)]
    return y_true, y_pred


def _of_one_rank(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    if not same_size(high.shape[-1], 1):
        return low, high
    if len(low.shape) == 1:
        return ops["expand_dims"](low, axis=-1), high
    return low, ops["squeeze"](high, axis=-1)


def column_dropped(x: Tensor, like: Any) -> Tensor:
    """Return ``x`` without its last axis, if that has size 1 and the shape ``like`` lacks it."""
    shape = x.shape
    if None in (shape, like) or len(shape) != len(like) + 1 or not same_size(shape[-1], 1):
        return x
    return ops["squeeze"](x, axis=-1)


def classes_of(name: str, y_true: Any, y_pred: Any) -> tuple[Tensor, Tensor]:
    """Return class labels as integers, and predictions with the classes in the last axis.

    Labels may be integers in any dtype, and may have an additional last axis of size 1. Predictions
    in float16 become float32.
    """
    y_true, y_pred = with_each_other((y_true, y_pred))
    y_pred = in_precision(y_pred, "float32")
    expected = y_pred.shape and y_pred.shape[:-1]
    y_true = column_dropped(y_true, expected)
    if expected is not None and y_true.shape is not None:
        if y_pred.shape == () or shapes_differ(y_true.shape, expected):
            raise ValueError(
                f"{name}: y_true has shape {y_true.shape}, y_pred has shape {y_pred.shape}; labels "
                "have one class per example, and predictions one more axis, that of the classes"
            )
        check_several(name, y_pred.shape[-1])
    if y_true.dtype.kind not in "iu":
        y_true = ops["class_labels"](y_true)
    return y_true, y_pred


def check_several(name: str, classes: int | None) -> None:
    """Raise if there is only one class, which would always be correct."""
    if same_size(classes, 1):
        raise ValueError(
            f"{name}: predictions for a single class are always correct; for binary predictions "
            "use binary_crossentropy and binary_accuracy"
        )


def mean_of(values: Tensor, axis: int = -1) -> Tensor:
    """Return the mean over one axis; a scalar is its own mean."""
    return values if values.shape == () else ops["mean"](values, axis=axis)


def weights_like(weight: Any, values: Tensor) -> Tensor:
    """Return the weights of examples in a shape that broadcasts with their values.

    They have the dtype of the values, or float64 if these are not floating-point numbers.

    Parameters
    ----------
    weight
        A number per example, in a vector or a column; or a number per value.
    values
        The values; the first axes are the examples.

    Raises
    ------
    ValueError
        If there are more or fewer weights than examples.
    """
    kind = values.dtype if values.dtype.kind in "fc" else "float64"  # hits may be booleans
    weight = with_others(weight, (values,)).astype(kind)
    given = weight.shape
    if weight.ndim == values.ndim + 1 and same_size(given[-1], 1):
        weight = ops["squeeze"](weight, axis=-1)
    while 0 < weight.ndim < values.ndim:
        weight = ops["expand_dims"](weight, axis=-1)
    fits = weight.ndim == 0 or (
        weight.ndim == values.ndim
        and all(
            same_size(m, 1) or not sizes_differ(m, n) for m, n in zip(weight.shape, values.shape)
        )
    )
    if not fits:
        raise ValueError(
            f"sample_weight has shape {given}, but the values have shape {values.shape}; give a "
            "number for each value, or for each example"
        )
    if not all(same_size(m, 1) or same_size(m, n) for m, n in zip(weight.shape, values.shape)):
        weight = ops["broadcast_to"](weight, shape=values.shape)  # raises in a run if sizes differ
    return weight


def mask_weights(mask: Any, values: Tensor, weight: Any, who: str) -> Any:
    """Return weights of values that are 0 for padding.

    Parameters
    ----------
    mask
        False where predictions are padding, of shape ``(batch, steps)``; None for no padding.
    values
        The values; their first axes are those of the mask.
    weight
        Further weights of the examples or the values, if there are any.
    who
        The loss or metric, for messages.

    Returns
    -------
    Tensor or None
        None if there is neither a mask nor a weight.
    """
    if mask is None:
        return weight
    mask = as_tensor(mask)
    if values.ndim < mask.ndim:
        warnings.warn(
            f"{who} has values of shape {values.shape}, so the mask of the model's output, of "
            f"shape {mask.shape}, cannot be applied: padding counts unless the function leaves it "
            "out. Return a value for each step to apply the mask",
            stacklevel=2,
        )
        return weight
    seen = weights_like(mask.astype(values.dtype), values)
    return seen if weight is None else weights_like(weight, values) * seen


def mean_of_counted(
    values: Tensor, counted: Tensor | None, weight: Any = None
) -> tuple[Tensor, Tensor | None]:
    """Return the mean of a batch's values, and the number of values in it if some do not count.

    An epoch's mean weights the batches by these numbers. Without them, it weights by examples.

    Parameters
    ----------
    values
        The values; the first axes are the examples.
    counted
        1 for values that count and 0 for others, in a shape that broadcasts; None if all count.
    weight
        Factors of the examples or the values, which do not change what the mean divides by.
    """
    if weight is not None:
        values = values * weights_like(weight, values)
    if counted is None:
        return ops["mean"](values), None
    counted = counted * ops["ones_like"](values)
    count = ops["sum"](counted)
    return ratio(ops["sum"](values * counted), count), count


def ratio(total: Tensor, count: Tensor) -> Tensor:
    """Return ``total / count``; 0, with gradient 0, where ``count`` is 0."""
    nothing = ops["equal"](count, 0)
    # both wheres are needed: the branch that is not chosen would still have a gradient of nan
    return ops["where"](nothing, 0.0, total / ops["where"](nothing, 1, count))
