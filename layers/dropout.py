"""Layers that are random while training: dropout and noise."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np

from ..core.extend import Stream, in_precision, key_for_examples, ops, sizes_differ
from .base.configured import Configured
from .base.weights import Rules
from .convolutional.spatial import Spatial
from .initializers import draw_seed

__all__ = [
    "AlphaDropout",
    "Dropout",
    "GaussianDropout",
    "GaussianNoise",
    "SpatialDropout1D",
    "SpatialDropout2D",
    "SpatialDropout3D",
]


class _Noisy(Configured):
    """Draws random numbers at each training call, and keeps the position in their sequence."""

    _gradtape_internal = "*"

    _family = """
    Parameters
    ----------
    rate
        The probability, in ``[0, 1)``.
    seed
        A seed; by default one is drawn from ``gradtape.random``.
    dtype
        A precision policy; random numbers are drawn in ``float32`` with any policy.

    Attributes
    ----------
    state : Variable
        The random state, initially ``[seed, 0]``. Every training call takes the next random
        numbers. The state is saved, so that a reloaded model continues the same sequence.

    Raises
    ------
    ValueError
        If ``rate`` is not in ``[0, 1)``.
    """
    keeps_mask = True
    weighs = False

    def __init__(
        self, seed: int | None, name: str | None, dtype: Any, **rules: Unpack[Rules]
    ) -> None:
        super().__init__(name, dtype, **rules)
        if seed is not None and not 0 <= operator.index(seed) < 2**62:
            raise ValueError(
                f"{type(self).__name__}: seed must be an integer from 0 to 2**62 - 1, got {seed!r}"
            )
        self.seed = None if seed is None else operator.index(seed)

    @property
    def built(self) -> bool:
        """Whether the random state exists."""
        return "state" in vars(self)

    @property
    def weight_names(self) -> tuple[str, ...]:
        """Empty: the random state is not a weight."""
        return ()

    @property
    def state_names(self) -> tuple[str, ...]:
        """The random state."""
        return ("state",)

    def shape_for_weights(self, shapes: Mapping[str, tuple[int, ...]]) -> Any:
        """Return a shape; the random state depends on none."""
        return ()

    def build(self, input_shape: Any) -> None:
        """Create the random state from the seed."""
        seed = draw_seed() if self.seed is None else self.seed
        source = Stream.shared
        asked = self.seed is not None or source is None or source.asked
        self.state = Stream(np.array([seed, 0]), asked)

    def drawn(self, op: str, like: Any) -> Any:
        """Return the next random numbers, of the shape of ``like``, in at least ``float32``."""
        with self.state.lock:
            key = self.state.value
            examples = key_for_examples(key)
            self.state.assign(ops["add"](key, 1))  # to both: no two seeds reach the same pair
        # float16 numbers are too coarse for small rates
        return ops[op](examples, in_precision(like, "float32"))

    def normal(self, like: Any) -> Any:
        """Return the next normally distributed numbers, of the shape and dtype of ``like``."""
        found = self.drawn("random_normal_like", like)
        return found if found.dtype == like.dtype else found.astype(like.dtype)


class _ByRate(_Noisy):
    """Base class of layers with a rate."""

    def __init__(
        self,
        rate: float,
        seed: int | None = None,
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(seed, name, dtype, **rules)
        if not 0.0 <= rate < 1.0:
            raise ValueError(f"{type(self).__name__}: rate must be in [0, 1), got {rate!r}")
        self.rate = float(rate)

    def call(self, x: Any, training: bool = False) -> Any:
        """Change ``x`` if ``training``."""
        return self._changed(x) if training and self.rate else x

    def _changed(self, x: Any) -> Any:
        """Return ``x`` as it is changed while training."""
        raise NotImplementedError

    def _kept(self, like: Any) -> Any:
        """Return which elements are kept."""
        return ops["greater_equal"](self.drawn("random_uniform_like", like), self.rate)


class _Shaped(_ByRate):
    """Base class of layers that may drop whole axes."""

    _family = """
    Parameters
    ----------
    noise_shape
        One entry per axis. Along an axis with 1, all elements are dropped together; ``None`` is
        the input's size. By default each element is dropped independently.

    Raises
    ------
    ValueError
        If ``rate`` is not in ``[0, 1)``. At the call, if ``noise_shape`` does not fit the input.
    """

    def __init__(
        self,
        rate: float,
        seed: int | None = None,
        name: str | None = None,
        dtype: Any = None,
        noise_shape: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(rate, seed, name, dtype, **rules)
        self.noise_shape = None if noise_shape is None else list(noise_shape)
        for n in self.noise_shape or ():
            if n is not None and (not hasattr(n, "__index__") or n < 1):
                raise TypeError(
                    f"{type(self).__name__}: noise_shape takes positive integers, and None for the "
                    f"input's size, got {noise_shape!r}"
                )

    def _kept(self, like: Any) -> Any:
        if self.noise_shape is not None:
            shape = like.array.shape
            fits = shape is not None and len(shape) == len(self.noise_shape)
            if not fits or any(
                n not in (None, 1) and sizes_differ(n, m) for n, m in zip(self.noise_shape, shape)
            ):
                raise ValueError(
                    f"layer {self.name!r} ({type(self).__name__}): noise_shape {self.noise_shape} "
                    f"does not fit an input of shape {shape}"
                )
            along = tuple(i for i, n in enumerate(self.noise_shape) if n == 1)
            like = ops["sum"](like, axis=along, keepdims=True) if along else like
        return super()._kept(like)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        config = super().get_config()  # left out by default, as in files of older versions
        if config["noise_shape"] is None:
            del config["noise_shape"]
        return config


class Dropout(_Shaped, saved_as="layers.Dropout"):
    """Set each element to zero with probability ``rate`` while training, and scale up the others.

    Notes
    -----
    Kept elements are divided by ``1 - rate`` ("inverted" dropout). The expected value is therefore
    the input, and inference leaves the input unchanged.

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

    def _changed(self, x: Any) -> Any:
        """Drop elements of ``x``."""
        return ops["where"](self._kept(x), x * (1.0 / (1.0 - self.rate)), 0.0)


class _SpatialDropout(_ByRate, Spatial):
    _member = """Set whole channels of ``(batch, {axes}, channels)`` to zero while training.

    References
    ----------
    J. Tompson, R. Goroshin, A. Jain, Y. LeCun and C. Bregler, "Efficient Object Localization Using
    Convolutional Networks", CVPR 2015.

    Examples
    --------
    >>> drop = gt.layers.{name}(0.5, seed=0)
    >>> drop(gt.ones((2, {4}, 3)), training=True).shape
    (2, {4}, 3)
    """
    _family = """
    Raises
    ------
    ValueError
        If ``rate`` is not in ``[0, 1)``. At the call, if the input has another number of axes.
    """

    def __init__(
        self,
        rate: float,
        seed: int | None = None,
        data_format: str | None = None,
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(rate, seed, name, dtype, **rules)
        self.set_data_format(data_format)

    def call(self, x: Any, training: bool = False) -> Any:
        """Drop channels of ``x`` if ``training``."""
        self.images(x)
        return super().call(x, training)

    def _changed(self, x: Any) -> Any:
        """Drop channels of ``x``."""
        first = 1 if self.data_format == "channels_last" else 2
        along = tuple(range(first, first + self.rank))
        like = ops["sum"](x, axis=along, keepdims=True)
        return ops["where"](self._kept(like), x * (1.0 / (1.0 - self.rate)), 0.0)


class SpatialDropout1D(_SpatialDropout, rank=1, saved_as="layers.SpatialDropout1D"): ...


class SpatialDropout2D(_SpatialDropout, rank=2, saved_as="layers.SpatialDropout2D"): ...


class SpatialDropout3D(_SpatialDropout, rank=3, saved_as="layers.SpatialDropout3D"): ...


class GaussianNoise(_Noisy, saved_as="layers.GaussianNoise"):
    """Add normally distributed noise of mean 0 while training.

    Parameters
    ----------
    stddev
        The noise's standard deviation.

    Raises
    ------
    ValueError
        If ``stddev`` is negative.

    Examples
    --------
    >>> noise = gt.layers.GaussianNoise(0.1, seed=0)
    >>> noise([1.0, 2.0]).tolist()
    [1.0, 2.0]
    """

    def __init__(
        self,
        stddev: float,
        seed: int | None = None,
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(seed, name, dtype, **rules)
        if not stddev >= 0.0:
            raise ValueError(f"GaussianNoise: stddev must not be negative, got {stddev!r}")
        self.stddev = float(stddev)

    def call(self, x: Any, training: bool = False) -> Any:
        """Add noise to ``x`` if ``training``."""
        if not training or self.stddev == 0.0:
            return x
        return x + self.normal(x) * self.stddev


class GaussianDropout(_ByRate, saved_as="layers.GaussianDropout"):
    """Multiply by normally distributed noise of mean 1 while training.

    Its standard deviation is ``sqrt(rate / (1 - rate))``, as for dropout at this rate.

    Parameters
    ----------
    rate
        The probability of dropout, in ``[0, 1)``.

    References
    ----------
    N. Srivastava, G. Hinton, A. Krizhevsky, I. Sutskever and R. Salakhutdinov, "Dropout: A Simple
    Way to Prevent Neural Networks from Overfitting", JMLR 15, 2014, section 10.

    Examples
    --------
    >>> gt.layers.GaussianDropout(0.5, seed=0)([1.0, 2.0]).tolist()
    [1.0, 2.0]
    """

    def _changed(self, x: Any) -> Any:
        """Multiply ``x`` by noise."""
        deviation = (self.rate / (1.0 - self.rate)) ** 0.5
        return x * (self.normal(x) * deviation + 1.0)


class AlphaDropout(_Shaped, saved_as="layers.AlphaDropout"):
    """Dropout that preserves mean 0 and variance 1 of its inputs, for use with ``selu``.

    References
    ----------
    G. Klambauer, T. Unterthiner, A. Mayr and S. Hochreiter, "Self-Normalizing Neural Networks",
    NeurIPS 2017.

    Examples
    --------
    >>> gt.layers.AlphaDropout(0.5, seed=0)([1.0, 2.0]).tolist()
    [1.0, 2.0]
    """

    _gradtape_internal = "lowest"

    #: The limit of ``selu`` for inputs towards minus infinity.
    lowest: ClassVar[float] = -1.7580993408473766

    def _changed(self, x: Any) -> Any:
        """Set elements of ``x`` to the lowest value, then scale and shift all."""
        kept = 1.0 - self.rate
        scale = (kept + self.lowest**2 * kept * self.rate) ** -0.5
        return ops["where"](self._kept(x), x, self.lowest) * scale - scale * self.lowest * self.rate
