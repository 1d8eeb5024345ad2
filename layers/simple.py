"""Layers without weights: ``Activation``, ``Dropout``, ``Flatten``."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from ..core.extend import Stream, in_precision, is_open, key_for_examples, known_size, ops
from . import activations
from .initializers import draw_seed
from .layer import Layer

__all__ = ["Activation", "Dropout", "Flatten"]


def _named(layer: Layer) -> dict[str, Any]:
    """Return what a layer without weights is made with besides: a dtype only if it was given."""
    policy = vars(layer).get("_gradtape_policy")
    return {"name": layer.name} if policy is None else {"name": layer.name, "dtype": policy}


class Activation(Layer, saved_as="layers.Activation"):
    """Apply an activation.

    Parameters
    ----------
    activation
        A name (``"relu"``, ...) or any callable of one tensor.
    name
        A Python identifier.
    dtype
        ``"float32"`` to compute in that, also what comes in ``float16``; or a precision policy.

    Raises
    ------
    ValueError
        If no activation has the name.

    Examples
    --------
    >>> gt.layers.Activation("relu")([-1.0, 2.0]).tolist()
    [0.0, 2.0]
    """

    def __init__(self, activation: Any, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(name, dtype)
        self.activation = activations.get(activation)

    def call(self, x: Any) -> Any:
        """Apply the activation to ``x``."""
        return x if self.activation is None else self.activation(x)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {"activation": activations.serialize(self.activation), **_named(self)}


class Dropout(Layer, saved_as="layers.Dropout"):
    """Set each element to zero with probability ``rate`` while training, and scale up the others.

    Parameters
    ----------
    rate
        The probability, in ``[0, 1)``.
    seed
        A seed; by default one is drawn from ``gradtape.random``.
    name
        A Python identifier.
    dtype
        A precision policy; random numbers are drawn in ``float32`` with any.

    Attributes
    ----------
    state : Variable
        A pair from ``[seed, 0]`` on; every call while training takes the next random numbers. It is
        saved, so that a reloaded model goes on with the same sequence.

    Raises
    ------
    ValueError
        If ``rate`` is not in ``[0, 1)``.

    Notes
    -----
    Kept elements are divided by ``1 - rate`` ("inverted" dropout), so that the expected value is
    the input and nothing happens at inference.

    References
    ----------
    N. Srivastava, G. Hinton, A. Krizhevsky, I. Sutskever and R. Salakhutdinov, "Dropout: A Simple
    Way to Prevent Neural Networks from Overfitting", JMLR 15, 2014.

    Examples
    --------
    >>> drop = gt.layers.Dropout(0.5, seed=1)
    >>> drop([1.0, 2.0]).tolist()
    [1.0, 2.0]
    >>> gt.sum(drop(gt.ones(1000), training=True)).item() in range(900, 1100)
    True
    """

    def __init__(
        self, rate: float, seed: int | None = None, name: str | None = None, dtype: Any = None
    ) -> None:
        super().__init__(name, dtype)
        if not 0.0 <= rate < 1.0:
            raise ValueError(f"Dropout: rate must be in [0, 1), got {rate!r}")
        self.rate = float(rate)
        if seed is not None and not 0 <= operator.index(seed) < 2**62:
            raise ValueError(f"Dropout: seed must be an integer from 0 to 2**62 - 1, got {seed!r}")
        self.seed = None if seed is None else operator.index(seed)

    @property
    def built(self) -> bool:
        """Whether the random state is there."""
        return "state" in vars(self)

    @property
    def weight_names(self) -> tuple[str, ...]:
        """None: the random state is no weight."""
        return ()

    @property
    def state_names(self) -> tuple[str, ...]:
        """The random state."""
        return ("state",)

    def shape_for_weights(self, shapes: Mapping[str, tuple[int, ...]]) -> Any:
        """Return any shape: none makes a difference."""
        return ()

    def build(self, input_shape: Any) -> None:
        """Seed the layer."""
        seed = draw_seed() if self.seed is None else self.seed
        source = Stream.shared
        asked = self.seed is not None or source is None or source.asked
        self.state = Stream(np.array([seed, 0]), asked)

    def call(self, x: Any, training: bool = False) -> Any:
        """Drop elements of ``x`` if ``training``."""
        if not training or self.rate == 0.0:
            return x
        with self.state.lock:
            key = self.state.value
            examples = key_for_examples(key)
            self.state.assign(ops["add"](key, 1))  # no two seeds ever come to the same pair
        # numbers of float16 are too coarse for small rates
        keep = ops["greater_equal"](
            ops["random_uniform_like"](examples, in_precision(x, "float32")), self.rate
        )
        return ops["where"](keep, x * (1.0 / (1.0 - self.rate)), 0.0)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {"rate": self.rate, "seed": self.seed, **_named(self)}


class Flatten(Layer, saved_as="layers.Flatten"):
    """Flatten every axis but the first: ``(batch, a, b, ...)`` becomes ``(batch, a * b * ...)``.

    Parameters
    ----------
    name
        A Python identifier.
    dtype
        A precision policy.

    Raises
    ------
    ValueError
        If ``name`` is no identifier; when called, if there is no axis, or their number is unknown.

    Examples
    --------
    >>> gt.layers.Flatten()(gt.zeros((2, 3, 4))).shape
    (2, 12)
    """

    def __init__(self, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(name, dtype)

    def call(self, x: Any) -> Any:
        """Flatten ``x``, of at least one axis."""
        shape = x.array.shape
        if not shape:
            raise ValueError(
                f"layer {self.name!r} (Flatten): the number of axes must be known, and there must "
                f"be a first, got shape {shape}"
            )
        size = prod(shape[1:])
        # -1 stands for one size, and not beside 0: the batch may be empty, and so may the rest
        batch = -1 if is_open(shape[0]) and known_size(size) and size else shape[0]
        return ops["reshape"](x, shape=(batch, size))

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return _named(self)
