"""Metric objects, which keep a running mean over batches; names are Keras's."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from inspect import unwrap
from types import CodeType
from typing import Any, ClassVar, Self

import numpy as np

from ...core.extend import (
    Module,
    Tensor,
    Variable,
    as_tensor,
    complete_docstring,
    init_scope,
    ops,
    warn_user,
    with_each_other,
)
from ...layers import initializers, mask_of, with_own_arguments
from .. import losses
from ..losses.loss import Kind
from ..names import name_of, returned
from ..shapes import checked, mask_weights, of_one_rank, ratio, weights_like
from . import functions

__all__ = [
    "Accuracy",
    "BinaryAccuracy",
    "BinaryCrossentropy",
    "CategoricalAccuracy",
    "CategoricalCrossentropy",
    "CosineSimilarity",
    "Mean",
    "MeanAbsoluteError",
    "MeanMetricWrapper",
    "MeanSquaredError",
    "Metric",
    "RootMeanSquaredError",
    "SparseCategoricalAccuracy",
    "SparseCategoricalCrossentropy",
    "SparseTopKCategoricalAccuracy",
    "Sum",
]


def _may_add(kind: type) -> bool:
    """Return whether a class names a sum in its code: its batches may have had nothing to add."""
    own = kind.__mro__[: kind.__mro__.index(Metric)]
    waiting = [getattr(unwrap(x), "__code__", None) for c in own for x in vars(c).values()]
    for code in waiting:  # grows by functions inside
        if isinstance(code, CodeType):
            if not {"add", "count", "total"}.isdisjoint(code.co_names):
                return True
            waiting += code.co_consts
    return False


class Metric(Module):
    """Base class of metrics.

    ``update_state(y_true, y_pred, sample_weight=None)`` adds a batch, and ``result`` returns the
    value for all batches since a reset. The state must be in variables: ``total`` and ``count``,
    to which :meth:`add` adds, or those of :meth:`add_weight`.

    Parameters
    ----------
    name
        A Python identifier, for histories; the class name in snake case by default.

    Attributes
    ----------
    total, count : Variable
        The weighted sum of the values, and the sum of their weights; ``float64``, in which counts
        are exact.

    Examples
    --------
    >>> class Largest(gt.training.metrics.Metric):
    ...     def __init__(self, name=None):
    ...         super().__init__(name)
    ...         self.largest = self.add_weight((), name="largest")
    ...     def update_state(self, y_true, y_pred, sample_weight=None):
    ...         error = gt.max(gt.abs(y_pred - y_true)).astype("float64")
    ...         self.largest.assign(gt.maximum(self.largest, error))
    ...     def result(self):
    ...         return self.largest.value
    >>> metric = Largest()
    >>> metric.update_state(gt.zeros((2, 1)), gt.constant([[1.0], [-3.0]]))
    >>> metric.result().item()
    3.0
    """

    _gradtape_internal = "meet_loss"
    _gradtape_hooks = "add_weight check_state get_config"

    _family = """
    Parameters
    ----------
    name
        A Python identifier; the class name in snake case by default.
    """
    #: The constructor's arguments besides the name; they are also attributes.
    _arguments: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        complete_docstring(cls)

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.total = Variable(0.0, trainable=False, name="total", dtype="float64")
        self.count = Variable(0.0, trainable=False, name="count", dtype="float64")

    _gradtape_kind: Any = None

    def meet_loss(self, kind: Any) -> None:
        """Note the loss that ``fit`` or ``evaluate`` computes from the same predictions.

        These call it before an update, and with None after it.

        Parameters
        ----------
        kind
            For a cross-entropy, an object with its ``name``, its ``classes`` (``"binary"``,
            ``"categorical"`` or ``"sparse"``), and whether it takes logits (``from_logits``).
            None for any other loss, and without one.
        """
        vars(self)["_gradtape_kind"] = kind

    def check_state(self) -> None:
        """Called at the end of an epoch: raise if the state shows that a batch was invalid."""
        updated, adds = (f"_gradtape_{x}" in vars(self) for x in ("updated", "adds"))
        if type(self).result is not Metric.result or adds or not updated:
            return  # it may have no count
        if not (self.count.item() or self.total.item() or _may_add(type(self))):
            raise NotImplementedError(
                f"{type(self).__name__}: define result(), since update_state adds nothing to total "
                "and count; or let it call self.add(values), whose mean is then the result"
            )

    def update_state(self, *args: Any, **kwargs: Any) -> None:
        """Add a batch."""
        raise NotImplementedError(f"{type(self).__name__}: define update_state")

    def result(self) -> Tensor:
        """Return the value as a tensor, 0 before any batch."""
        return ratio(self.total.value, self.count.value)

    def add_weight(
        self,
        shape: Sequence[int] = (),
        initializer: Any = "zeros",
        dtype: Any = None,
        name: str | None = None,
    ) -> Variable:
        """Return a new variable, for an attribute of the metric.

        Parameters
        ----------
        shape
            Its shape; a scalar by default.
        initializer
            The initial value. ``fit`` resets metrics before it begins, and ``reset_state`` sets
            variables to zero: override it for another value.
        dtype
            ``float64`` by default: ``float32`` cannot count beyond 2**24.
        name
            A Python identifier, ``"weight"`` by default.
        """
        if isinstance(shape, (str, int)):
            raise TypeError(
                f"add_weight: the shape is a tuple of sizes and comes first, got {shape!r}; as in "
                'add_weight((), name="total")'
            )
        kind = "float64" if dtype is None else dtype
        with init_scope():
            value = initializers.get(initializer)(tuple(shape), kind)
            made = Variable(value, trainable=False, name=name or "weight", dtype=kind)
            first = made.numpy()
        if type(self).reset_state is Metric.reset_state and np.any(first != 0):
            warn_user(
                f"metric {type(self).__name__}: {made.name!r} begins with {first}, but "
                "reset_state sets it to 0 before the first batch; define reset_state, so that it "
                "assigns the initial value",
                UserWarning,
            )
        return made

    def reset_state(self) -> None:
        """Set all variables to zero, so that earlier batches do not count."""
        for variable in self.variables:
            variable.assign(np.zeros(variable.shape, variable.dtype.name))

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        """Add a batch, and return the value."""
        self.update_state(*args, **kwargs)
        return self.result()

    def add(self, values: Any, sample_weight: Any = None) -> None:
        """Add values to the total, and their number (or their weights) to the count.

        Parameters
        ----------
        values
            Numbers of any shape, such as one per example.
        sample_weight
            Weights of the values, which broadcast to their shape; 1 by default.
        """
        vars(self)["_gradtape_adds"] = True
        values = as_tensor(values).astype("float64")
        count = ops["ones_like"](values)
        if sample_weight is not None:
            weight = weights_like(sample_weight, values)
            values, count = values * weight, weight * count
        self.total.assign_add(ops["sum"](values))
        self.count.assign_add(ops["sum"](count))

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        given = {argument: getattr(self, argument) for argument in self._arguments}
        return with_own_arguments(self, Metric, {**given, "name": self.name})

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Return a metric, constructed from what :meth:`get_config` returned."""
        return cls(**config)


@contextmanager
def knowing_losses(pairs: Iterable[tuple[Metric, Any]]) -> Iterator[None]:
    """Run a block in which metrics know the kinds of their losses, and no longer."""
    met = [(metric, metric._gradtape_kind, kind) for metric, kind in pairs]
    try:
        for metric, _, kind in met:
            metric.meet_loss(kind)
        yield
    finally:
        for metric, before, _ in met:  # runs nest: a callback may evaluate
            metric.meet_loss(before)


class Mean(Metric, saved_as="training.metrics.Mean"):
    """The mean of all values.

    Examples
    --------
    >>> mean = gt.training.metrics.Mean()
    >>> mean.update_state([1.0, 3.0])
    >>> mean.update_state(5.0)
    >>> mean.result().item()
    3.0
    """

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        """Add values, with their weights."""
        self.add(values, sample_weight)


class Sum(Metric, saved_as="training.metrics.Sum"):
    """The sum of all values."""

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        """Add values, with their weights."""
        self.add(values, sample_weight)

    def result(self) -> Tensor:
        """Return the sum as a tensor."""
        return self.total.value


class MeanOf(Metric):
    """The mean of a function that has a value per example and takes settings."""

    _gradtape_internal = "* by_example function"

    _family = """
    Parameters
    ----------
    from_logits, label_smoothing, axis
        As for the function. By default ``from_logits`` is that of the loss in ``fit`` and
        ``evaluate``, otherwise true, unlike in Keras.
    """
    function: ClassVar[Callable[..., Any]]
    #: Whether a vector and a column hold the same examples; not if the last axis holds classes.
    _columns: ClassVar[bool] = False

    def __init_subclass__(cls, of: Any = None, columns: bool = False, **kwargs: Any) -> None:
        if of is not None:  # one of gradtape's functions: the class and files have its name
            cls.function, cls._columns = staticmethod(of), columns
            kwargs.setdefault("saved_as", f"training.metrics.{cls.__name__}")
        super().__init_subclass__(**kwargs)

    def __init__(self, name: str | None = None, **settings: Any) -> None:
        super().__init__(name)
        self.settings = settings

    def per_example(self, y_true: Any, y_pred: Any) -> Any:
        """Return the value of each example."""
        if self._columns:
            y_true, y_pred = of_one_rank(y_true, y_pred)
            if y_true.array.shape is not None and len(y_true.array.shape) == 1:
                # each number is an example: a mean over the vector would reduce the batch to one
                y_true, y_pred = y_true[:, None], y_pred[:, None]
        return type(self).function(y_true, y_pred, **self.resolved())

    def resolved(self) -> dict[str, Any]:
        """Return the function's settings; the loss says whether predictions are logits."""
        if self.settings.get("from_logits", False) is not None:
            return self.settings
        kind = self._gradtape_kind
        return {**self.settings, "from_logits": kind is None or kind.from_logits}

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add labels and predictions, with weights of the examples; padding does not count."""
        values = returned(self.per_example(y_true, y_pred), self)
        self.add(values, mask_weights(mask_of(y_pred), values, sample_weight, self.name))

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {**self.settings, **super().get_config()}


class MeanMetricWrapper(MeanOf):
    """The mean of any function of labels and predictions.

    Parameters
    ----------
    fn
        A function with a value per example.
    name
        A Python identifier; by default the name of the function, or of the object's class.
    settings
        Keyword arguments for the function.
    """

    def __init__(self, fn: Callable[..., Any], name: str | None = None, **settings: Any) -> None:
        super().__init__(name or re.sub(r"\W", "", name_of(fn)), **settings)
        self.fn = fn

    def per_example(self, y_true: Any, y_pred: Any) -> Any:
        """Return the value of each example."""
        return self.fn(y_true, y_pred, **self.settings)


def _equal(y_true: Any, y_pred: Any) -> Tensor:
    y_true, y_pred = with_each_other((y_true, y_pred))
    y_true = checked("Accuracy", y_true, y_pred)
    return ops["equal"](y_true, y_pred)


class _Plain(MeanOf):
    """The mean of a function without settings."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)


class Accuracy(_Plain, of=_equal, columns=True):
    """The share of predictions that equal their labels."""


class SparseCategoricalAccuracy(_Plain, of=functions.sparse_categorical_accuracy):
    """The mean of :func:`sparse_categorical_accuracy`.

    Examples
    --------
    >>> metric = gt.training.metrics.SparseCategoricalAccuracy()
    >>> metric([1, 1], [[0.1, 0.9], [0.8, 0.2]]).item()
    0.5
    """


class CategoricalAccuracy(_Plain, of=functions.categorical_accuracy):
    """The mean of :func:`categorical_accuracy`."""


class BinaryAccuracy(MeanOf, of=functions.binary_accuracy, columns=True):
    """The mean of :func:`binary_accuracy`.

    Parameters
    ----------
    threshold
        Predictions above it count as 1. With a loss of logits, a threshold between 0 and 1 is one
        for probabilities.
    """

    by_example = True

    def __init__(self, threshold: float = 0.5, name: str | None = None) -> None:
        super().__init__(name, threshold=threshold)

    def resolved(self) -> dict[str, Any]:
        """Return the threshold, in logits if the loss takes these."""
        kind, threshold = self._gradtape_kind, self.settings["threshold"]
        if kind is None or not kind.from_logits or not 0.0 < threshold < 1.0:
            return self.settings
        return {"threshold": math.log(threshold / (1.0 - threshold))}


def _accuracy_with(function: Any, kind: Kind) -> Any:
    """Return the accuracy with a loss: with a binary one, whose logits have a threshold of 0."""
    if kind.classes != "binary":
        return function
    return BinaryAccuracy(0.0 if kind.from_logits else 0.5).per_example


for _function in (functions.accuracy, functions.binary_accuracy):
    vars(_function)["with_loss"] = partial(_accuracy_with, _function)


class SparseTopKCategoricalAccuracy(MeanOf, of=functions.sparse_top_k_categorical_accuracy):
    """The mean of :func:`sparse_top_k_categorical_accuracy`.

    Parameters
    ----------
    k
        The number of predictions that count.
    """

    def __init__(self, k: int = 5, name: str | None = None) -> None:
        super().__init__(name, k=k)


class MeanSquaredError(_Plain, of=losses.mean_squared_error, columns=True):
    """The mean squared error."""


class RootMeanSquaredError(MeanSquaredError, saved_as="training.metrics.RootMeanSquaredError"):
    """The square root of the mean squared error."""

    def result(self) -> Tensor:
        """Return the root as a tensor."""
        return ops["sqrt"](super().result())


class MeanAbsoluteError(_Plain, of=losses.mean_absolute_error, columns=True):
    """The mean absolute error."""


class CosineSimilarity(MeanOf, saved_as="training.metrics.CosineSimilarity"):
    """The mean cosine of the angle between labels and predictions, 1 for the same direction.

    Parameters
    ----------
    axis
        The axis of the vectors.
    """

    def __init__(self, axis: int = -1, name: str | None = None) -> None:
        super().__init__(name, axis=axis)

    @staticmethod
    def function(y_true: Any, y_pred: Any, axis: int) -> Tensor:
        """Return the cosines, which the loss has with the opposite sign."""
        return -losses.cosine_similarity(y_true, y_pred, axis)


class BinaryCrossentropy(MeanOf, of=losses.binary_crossentropy, columns=True):
    """The mean cross-entropy of binary labels."""

    def __init__(
        self, from_logits: bool | None = None, label_smoothing: float = 0.0, name: str | None = None
    ) -> None:
        super().__init__(name, from_logits=from_logits, label_smoothing=label_smoothing)


class CategoricalCrossentropy(MeanOf, of=losses.categorical_crossentropy):
    """The mean cross-entropy of label distributions."""

    def __init__(
        self,
        from_logits: bool | None = None,
        label_smoothing: float = 0.0,
        axis: int = -1,
        name: str | None = None,
    ) -> None:
        settings = {"label_smoothing": label_smoothing, "axis": axis}
        super().__init__(name, from_logits=from_logits, **settings)


class SparseCategoricalCrossentropy(MeanOf, of=losses.sparse_categorical_crossentropy):
    """The mean cross-entropy of integer labels."""

    def __init__(
        self, from_logits: bool | None = None, axis: int = -1, name: str | None = None
    ) -> None:
        super().__init__(name, from_logits=from_logits, axis=axis)
