"""``BatchNorm``: normalise each channel by the batch's mean and variance."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from math import prod
from typing import Any, ClassVar, Unpack

from ..core.extend import (
    Tensor,
    Variable,
    as_tensor,
    communicator,
    has_unknown_sizes,
    known_size,
    ops,
    same_size,
    scope_of,
    sizes_differ,
    warn_user,
)
from . import initializers
from .base.layer import Elsewhere, Layer
from .base.weights import Rules

__all__ = ["BatchNorm", "BatchNormalization"]

#: The weights, and their default initializers.
_WEIGHTS = {"gamma": "ones", "beta": "zeros", "moving_mean": "zeros", "moving_variance": "ones"}


class BatchNorm(Layer, saved_as="layers.BatchNorm"):
    """Batch normalisation.

    Parameters
    ----------
    axis
        The axis of the channels; each is normalised over all other axes.
    momentum
        The factor, in ``[0, 1]``, by which each training call multiplies the moving statistics.
    epsilon
        Added to the variance, inside the root.
    center
        Whether to add ``beta``.
    scale
        Whether to multiply by ``gamma``.
    name
        A Python identifier.
    dtype
        The dtype of the variables. The default is the dtype of the first input if that is floating,
        otherwise ``float32``. Or a precision policy; statistics are always computed in ``float32``.
    beta_initializer, gamma_initializer, moving_mean_initializer, moving_variance_initializer
        Names, objects of :mod:`gradtape.layers.initializers`, or functions of shape and dtype.
    synchronized
        Whether training uses the mean and variance of the examples of all ranks, in a job of
        several ranks (:mod:`gradtape.distributed`). By default each rank uses its own.
    rules
        ``gamma_regularizer``, ``beta_regularizer``, ``activity_regularizer``, and constraints: as
        for :class:`Dense`.

    Attributes
    ----------
    gamma, beta : Variable or None
        Shape ``(channels,)``, initially 1 and 0.
    moving_mean, moving_variance : Variable
        Shape ``(channels,)``, initially 0 and 1; not trained by gradients.

    Raises
    ------
    ValueError
        If a parameter is out of its range. At the call, if ``x`` lacks the axis or has another
        number of channels.

    Notes
    -----
    With ``training=True``::

        y = gamma * (x - mean(x)) / sqrt(var(x) + epsilon) + beta
        moving_mean = moving_mean * momentum + mean(x) * (1 - momentum)
        moving_variance = moving_variance * momentum + var(x) * (1 - momentum)

    With ``training=False``, the default, or if the layer is frozen (``trainable = False``), the
    moving statistics replace those of the batch. Both use the biased variance (divided by n), as
    in Keras. PyTorch's moving variance is unbiased, and its momentum is one minus this one.

    References
    ----------
    S. Ioffe and C. Szegedy, "Batch Normalization", ICML 2015.

    Examples
    --------
    >>> layer = gt.layers.BatchNorm()
    >>> y = layer(gt.constant([[1.0], [3.0]]), training=True)
    >>> [round(v, 3) for v in y.numpy()[:, 0].tolist()]
    [-1.0, 1.0]
    >>> round(layer.moving_mean.numpy().item(), 3)
    0.02
    """

    #: :meth:`compute_mask` passes masks on and makes none.
    makes_mask: ClassVar[bool] = False

    takes_one = True
    takes_integers = False

    names_elsewhere: ClassVar[Elsewhere] = {
        "pytorch": {
            "gamma": ("weight", None),
            "beta": ("bias", None),
            "moving_mean": ("running_mean", None),
            "moving_variance": ("running_var", None),
        },
        "keras": {"": ("batch_normalization", None)},
    }
    defaults_elsewhere: ClassVar[Mapping[str, Mapping[str, Any]]] = {"pytorch": {"epsilon": 1e-5}}
    computes_in_float32 = True

    gamma: Variable | None = None
    beta: Variable | None = None
    moving_mean: Variable
    moving_variance: Variable
    ruled: ClassVar[Mapping[str, str]] = {"gamma": "gamma", "beta": "beta"}

    def __init__(
        self,
        axis: int = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        name: str | None = None,
        dtype: Any = None,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        moving_mean_initializer: Any = "zeros",
        moving_variance_initializer: Any = "ones",
        synchronized: bool = False,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        given = (
            gamma_initializer, beta_initializer, moving_mean_initializer,
            moving_variance_initializer,
        )  # fmt: skip
        self._gradtape_initial = dict(zip(_WEIGHTS, map(initializers.get, given)))
        if not 0.0 <= momentum <= 1.0:
            raise ValueError(f"BatchNorm: momentum must be in [0, 1], got {momentum!r}")
        if not epsilon >= 0.0:
            raise ValueError(f"BatchNorm: epsilon must not be negative, got {epsilon!r}")
        self.axis = operator.index(axis)
        self.momentum = float(momentum)
        self.epsilon = float(epsilon)
        self.center = bool(center)
        self.scale = bool(scale)
        if not isinstance(synchronized, bool):
            raise TypeError(f"BatchNorm: synchronized is True or False, got {synchronized!r}")
        self.synchronized = synchronized

    @property
    def built(self) -> bool:
        """Whether the moving statistics exist."""
        return "moving_mean" in vars(self)

    def build(self, input_shape: Any) -> None:
        """Create the variables, with one element per channel."""
        if input_shape is None or not -len(input_shape) <= self.axis < len(input_shape):
            raise ValueError(
                f"layer {self.name!r} (BatchNorm): its input has no axis {self.axis}, "
                f"got shape {input_shape}"
            )
        channels = input_shape[self.axis]
        if not known_size(channels):
            raise ValueError(
                f"layer {self.name!r} (BatchNorm): axis {self.axis} of its input must be known "
                f"when it is first called, got shape {input_shape}"
            )
        for name in self.weight_names:
            trains = not name.startswith("moving")
            value = self.add_weight(
                (channels,), self._gradtape_initial[name], name, trainable=trains
            )
            setattr(self, name, value)

    @property
    def weight_names(self) -> tuple[str, ...]:
        """``gamma`` if ``scale``, ``beta`` if ``center``, and the moving statistics."""
        own = ("gamma",) * self.scale + ("beta",) * self.center
        return (*own, "moving_mean", "moving_variance")

    @property
    def averaged_on_ranks(self) -> tuple[str, ...]:
        """The moving statistics, unless the layer is ``synchronized``."""
        return () if self.synchronized else ("moving_mean", "moving_variance")

    def shape_for_weights(self, shapes: Mapping[str, tuple[int, ...]]) -> Any:
        """Return an input shape with as many channels as the weights."""
        channels = next((shape for shape in shapes.values() if len(shape) == 1), None)
        if channels is None:
            return None
        rank = max(self.axis + 1, -self.axis)
        sizes: list[int | None] = [None] * rank
        sizes[self.axis] = channels[0]
        return tuple(sizes)

    def compute_mask(self, x: Any, mask: Any = None) -> Any:
        """Return the mask of the inputs."""
        return mask

    def call(self, x: Any, training: bool = False, mask: Any = None) -> Any:
        """Normalise ``x`` with its own statistics if ``training``, otherwise with the moving ones.

        A frozen layer always uses the moving ones. Elements where ``mask``, of shape ``(batch,
        steps)``, is false do not count in the statistics.
        """
        shape = x.array.shape
        if shape is not None:
            self._check(shape, training and self.trainable)
            # one channel would broadcast
            if has_unknown_sizes(shape) and not known_size(shape[self.axis]):
                along = self.axis % len(shape)
                channels = self.moving_mean.array.shape[0]
                x = ops["reshape"](x, shape=(*shape[:along], channels, *shape[along + 1 :]))
        if x.dtype.kind in "biu":
            x = x.astype(self.moving_mean.dtype)
        if not training or not self.trainable:
            return self._normalised(x, self.moving_mean.value, self.moving_variance.value)
        together = self.synchronized and communicator().size > 1
        single = (
            shape is not None and not has_unknown_sizes(shape) and prod(shape) == shape[self.axis]
        )
        if single and not together:
            warn_user(
                f"layer {self.name!r} (BatchNorm): an input of shape {shape} has one value per "
                "channel. It equals its own mean, so the layer learns nothing from it. Use batches "
                "of several examples; Dataset.batch(n, drop_remainder=True) drops a last short one",
                UserWarning,
            )
        gamma = self._constant("ones_like") if self.gamma is None else self.gamma.value
        beta = self._constant("zeros_like") if self.beta is None else self.beta.value
        if mask is not None or together:
            given = None if mask is None else as_tensor(mask)
            mean, variance = self._moments(x, given, self.synchronized)
            y = self._normalised(x, mean, variance)
            mean, variance = (ops["stop_gradient"](part) for part in (mean, variance))
        else:
            y, mean, variance = ops["batch_norm_training"](
                x, gamma, beta, axis=self.axis, epsilon=self.epsilon
            )
        self._move(self.moving_mean, mean)
        self._move(self.moving_variance, variance)
        return y

    def _moments(self, x: Any, mask: Any, together: bool) -> tuple[Any, Any]:
        """Return mean and variance of the elements that a mask of the first axes keeps, or of all.

        If ``together``, they are those of all ranks. One message carries sums and counts, another
        one squares.
        """
        if x.dtype.itemsize < 4:
            x = x.astype("float32")
        along = tuple(i for i in range(x.ndim) if i != self.axis % x.ndim)
        count: Any = None
        if mask is not None:
            kept = ops["reshape"](mask, shape=(*mask.shape, *(1,) * (x.ndim - mask.ndim)))
            weight = kept.astype(x.dtype) * ops["ones_like"](x)
            x = ops["where"](kept.astype("bool"), x, 0.0)  # what is left out may be NaN
            count = ops["sum"](weight, axis=along, keepdims=False)
        elif has_unknown_sizes(x.shape):
            count = ops["sum"](ops["ones_like"](x), axis=along, keepdims=False)

        def summed(values: Any) -> Any:
            values = values if mask is None else weight * values
            return ops["sum"](values, axis=along, keepdims=False)

        total = summed(x)
        if count is None:
            count = ops["ones_like"](total) * float(prod(x.shape[i] for i in along))
        if together:
            both = ops["sum_over_ranks"](ops["stack"](total, count, axis=0))
            total, count = both[0], both[1]
        there = None
        if mask is not None:
            there = ops["greater"](count, 0)
            count = ops["where"](there, count, 1.0)
        mean = total / count
        wide = tuple(-1 if i == self.axis % x.ndim else 1 for i in range(x.ndim))
        squares = summed((x - ops["reshape"](mean, shape=wide)) ** 2)
        variance = (ops["sum_over_ranks"](squares) if together else squares) / count
        if there is not None:  # a batch of padding has no statistics, and changes none
            mean = ops["where"](there, mean, self.moving_mean.value)
            variance = ops["where"](there, variance, self.moving_variance.value)
        return mean, variance

    def _check(self, shape: tuple[Any, ...], training: Any) -> None:
        channels = self.moving_mean.array.shape[0]
        outside = not -len(shape) <= self.axis < len(shape)
        if outside or sizes_differ(shape[self.axis], channels):
            raise ValueError(
                f"layer {self.name!r} (BatchNorm): expected {channels} channels on axis "
                f"{self.axis}, got an input of shape {shape}"
            )
        if training and (
            any(same_size(n, 0) for n in shape) if has_unknown_sizes(shape) else 0 in shape
        ):
            raise ValueError(
                f"layer {self.name!r} (BatchNorm): an input of shape {shape} has no elements, so "
                "its mean is undefined"
            )

    def _normalised(self, x: Tensor, mean: Any, variance: Any) -> Any:
        shape = x.array.shape
        factor = ops["divide"](1.0, ops["sqrt"](ops["add"](variance, self.epsilon)))
        if self.gamma is not None:
            factor = ops["multiply"](factor, self.gamma.value)
        shift = ops["multiply"](mean, factor)
        shift = -shift if self.beta is None else ops["subtract"](self.beta.value, shift)
        if self.axis != -1:
            if shape is None:
                raise ValueError(
                    f"layer {self.name!r} (BatchNorm): with axis={self.axis}, the rank of its "
                    "input must be known; use axis=-1 or a TensorSpec with a rank"
                )
            along = [1] * len(shape)
            along[self.axis] = -1
            factor = ops["reshape"](factor, shape=tuple(along))
            shift = ops["reshape"](shift, shape=tuple(along))
        return ops["add"](ops["multiply"](x, factor), shift)

    def _constant(self, op: str) -> Any:
        """Return the neutral value of a parameter that the layer does not have."""
        return ops[op](self.moving_mean.value)

    def _move(self, moving: Variable, batch: Tensor) -> None:
        # on arrays, so that no tape records it; in a trace they are symbols
        with moving.lock:
            old = moving.handle().array
            with scope_of((old,)):
                new = batch.array - old
                new *= 1.0 - self.momentum
                new += old
            held = moving.array
            if type(new) is type(held) and new.dtype is held.dtype:
                moving.set_array(new)
            else:
                moving.assign(Tensor(new))

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {
            "axis": self.axis,
            "momentum": self.momentum,
            "epsilon": self.epsilon,
            "center": self.center,
            "scale": self.scale,
            # defaults are left out, as in files of versions without these settings
            **{
                f"{name}_initializer": initial
                for name, x in self._gradtape_initial.items()
                if (initial := initializers.serialize(x)) != {"name": _WEIGHTS[name], "config": {}}
            },
            **({"synchronized": True} if self.synchronized else {}),
            **super().get_config(),
        }


#: Keras's name.
BatchNormalization = BatchNorm
