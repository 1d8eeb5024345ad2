"""``Normalization``: normalises features with the statistics of a whole data set."""

from __future__ import annotations

import operator
from typing import Any, Unpack

import numpy as np

from ..core.extend import Tensor, Variable, init_scope, ops
from .base.configured import Configured
from .base.weights import Rules

__all__ = ["Normalization"]


class Normalization(Configured, saved_as="layers.Normalization"):
    """Shift and scale features to mean 0 and variance 1, with statistics of the data.

    Parameters
    ----------
    axis
        The axis of the features, each with its own statistics; the last by default. ``None`` uses
        one mean and variance for all.
    mean, variance
        The statistics, if they are known; otherwise :meth:`adapt` computes them.
    invert
        Whether to undo the normalisation instead.
    dtype
        The dtype of the statistics. The default is the dtype of the first input if that is
        floating, otherwise ``float32``.

    Attributes
    ----------
    mean, variance : Variable
        Shape ``(features,)``, or ``()`` with ``axis=None``; not trained.

    Raises
    ------
    ValueError
        If only one of ``mean`` and ``variance`` is given. At the call, if there are no statistics
        yet, or the number of features differs.

    Examples
    --------
    >>> layer = gt.layers.Normalization()
    >>> layer.adapt([[1.0, 10.0], [3.0, 30.0]])
    >>> layer([[1.0, 20.0]]).tolist()
    [[-1.0, 0.0]]
    """

    mean: Variable
    variance: Variable

    computes_in_float32 = True

    def __init__(
        self,
        axis: int | None = -1,
        mean: Any = None,
        variance: Any = None,
        invert: bool = False,
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        if (mean is None) != (variance is None):
            raise ValueError("Normalization: give both mean and variance, or neither")
        self.axis = None if axis is None else operator.index(axis)
        self.invert = bool(invert)
        if mean is not None:
            self._keep(np.asarray(mean), np.asarray(variance))

    @property
    def built(self) -> bool:
        """Whether the statistics exist."""
        return "variance" in vars(self)

    @property
    def weight_names(self) -> tuple[str, ...]:
        """The statistics."""
        return ("mean", "variance")

    def build(self, input_shape: Any) -> None:
        """Raise, because statistics do not follow from a shape."""
        raise ValueError(
            f"layer {self.name!r} (Normalization): it has no statistics yet; call its adapt(data) "
            "first, or give mean= and variance="
        )

    def adapt(self, data: Any) -> None:
        """Compute mean and variance from data, and replace earlier ones.

        Parameters
        ----------
        data
            An array, or an iterable of batches. Of batches ``(x, y)`` or ``(x, y, weights)``, and
            of the lists that PyTorch's loaders give, only ``x`` counts.

        Raises
        ------
        ValueError
            If there are no examples, or batches have different numbers of features. If a value is
            NaN or infinite, as its statistics would be. With ``axis``, if the data are an array of
            one axis.
        TypeError
            If ``data`` is a tuple of arrays, or a batch is not an array.
        """
        if isinstance(data, tuple) and _has_parts(data):
            raise TypeError(
                f"layer {self.name!r} (Normalization): adapt takes inputs without labels, got a "
                f"tuple of {len(data)} arrays; pass the inputs: adapt(x)"
            )
        whole = hasattr(data, "shape") or _is_nested(data)
        if whole and self.axis is not None and _is_vector(data) and len(data) > 1:
            raise ValueError(
                f"layer {self.name!r} (Normalization): adapt got an array of shape "
                f"({len(data)},), which is one example of {len(data)} features; give a column of "
                "numbers as x[:, None], or the layer axis=None"
            )
        batches = [data] if whole else data
        count, mean, squares = 0, np.zeros(()), np.zeros(())
        for batch in batches:
            labelled = _has_parts(batch) if isinstance(batch, tuple) else _is_loaded(batch)
            x = self._as_array(batch[0] if labelled else batch)
            over = tuple(i for i in range(x.ndim) if self.axis is None or i != self.axis % x.ndim)
            n = int(np.prod([x.shape[i] for i in over]))
            if not n:
                continue
            # merged as in Chan, Golub and LeVeque, 1983: sums of squares would lose digits
            own = x.mean(over)
            if count and own.shape != mean.shape:
                raise ValueError(
                    f"layer {self.name!r} (Normalization): adapt got batches with statistics of "
                    f"shapes {mean.shape} and {own.shape}; all need the same features"
                )
            apart = own - mean
            squares = squares + x.var(over) * n + apart**2 * (count * n / (count + n))
            mean = mean + apart * (n / (count + n))
            count += n
        if not count:
            raise ValueError(f"layer {self.name!r} (Normalization): adapt got no examples")
        self._keep(mean, squares / count)

    def _as_array(self, batch: Any) -> Any:
        try:
            found = np.asarray(getattr(batch, "numpy", lambda: batch)(), "float64")
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"layer {self.name!r} (Normalization): adapt takes arrays of numbers, or batches "
                f"of them, got a {type(batch).__name__} ({error})"
            ) from None
        wrong = ~np.isfinite(found)
        if wrong.any():
            places = wrong.nonzero()[self.axis] if self.axis is not None and found.ndim else []
            told = ", ".join(map(str, np.unique(places)[:5]))
            raise ValueError(
                f"layer {self.name!r} (Normalization): adapt got NaN or infinity"
                f"{f' (features {told})' if told else ''}; replace missing values, or leave these "
                "examples out"
            )
        return found

    def _keep(self, mean: Any, variance: Any) -> None:
        if self.built:
            self.mean.assign(mean)
            self.variance.assign(variance)
            return
        with init_scope():
            for name, value in (("mean", mean), ("variance", variance)):
                start = lambda shape, dtype, value=value: np.asarray(value, dtype)  # noqa: E731
                setattr(self, name, self.add_weight(np.shape(value), start, name, trainable=False))
        self.mark_built()

    def call(self, x: Any) -> Any:
        """Normalise ``x``."""
        mean, variance = self.mean.value, self.variance.value
        if x.array.shape is None and mean.ndim:
            raise ValueError(
                f"layer {self.name!r} (Normalization): the rank of its input must be known; use a "
                "TensorSpec with a rank"
            )
        if x.dtype.kind in "biu":
            x = x.astype(mean.dtype)
        if self.axis is not None and mean.ndim:
            x = self.fitted(x, {self.axis: mean.shape[0]})
            shape = [1] * x.ndim
            shape[self.axis] = -1
            mean = ops["reshape"](mean, shape=tuple(shape))
            variance = ops["reshape"](variance, shape=tuple(shape))
        deviation = ops["maximum"](ops["sqrt"](variance), 1e-7)
        return x * deviation + mean if self.invert else (x - mean) / deviation

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments; the statistics are variables."""
        return {
            "axis": self.axis,
            "invert": self.invert,
            "name": self.name,
            "dtype": self.given_dtype,
            **self.rules_given(),
        }


def _has_parts(batch: tuple[Any, ...]) -> bool:
    """Return whether a tuple holds arrays, such as inputs and labels, and is not one itself."""
    return any(isinstance(x, Tensor) or (hasattr(x, "shape") and np.ndim(x)) for x in batch)


def _is_loaded(batch: Any) -> bool:
    """Return whether a batch is ``[x]``, ``[x, y]`` or ``[x, y, weights]``, as for ``fit``."""
    if type(batch) is not list or len(batch) not in (1, 2, 3):
        return False
    shapes = [tuple(getattr(x, "shape", ())) for x in batch]
    # vectors of one length are the rows of a batch
    return all(shapes) and len(shapes[0]) > 1 and len({shape[0] for shape in shapes}) == 1


def _is_vector(data: Any) -> bool:
    """Return whether an array, or a list of numbers, has one axis."""
    return (
        len(data.shape) == 1 if hasattr(data, "shape") else not isinstance(data[0], (list, tuple))
    )


def _is_nested(data: Any) -> bool:
    """Return whether data is one array, as nested lists of numbers."""
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return isinstance(data, (int, float))
