"""Initial values of weights.

Values are drawn on the host from a Philox generator, so that a seed gives the same weights on
every backend. An initializer without its own seed takes one from ``gradtape.random``, so one global
seed determines all weights. Names, formulas and defaults are Keras's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.extend import Setting, batch_rows, complete_docstring, registry, snake_case

# by its public name: layers do not know which plugin provides it
from ..random import uniform as random_uniform
from .configs import Named, find, reference

__all__ = [
    "Constant",
    "GlorotNormal",
    "GlorotUniform",
    "HeNormal",
    "HeUniform",
    "Identity",
    "Initializer",
    "LecunNormal",
    "LecunUniform",
    "Ones",
    "Orthogonal",
    "RandomNormal",
    "RandomUniform",
    "TruncatedNormal",
    "VarianceScaling",
    "Zeros",
    "get",
    "serialize",
]

# The standard deviation of a standard normal distribution cut off at two standard deviations.
_CUT_STDDEV = 0.87962566103423978


def draw_seed() -> int:
    """Return a seed from the global generator of ``gradtape.random``."""
    with Setting(batch_rows, None):  # the two numbers are no rows of a rank with two examples
        high, low = random_uniform((2,), 0.0, 2.0**31, dtype="float64").numpy()
    return (int(high) << 31) + int(low)


def fans(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return the numbers of inputs and outputs, the last two axes, that a weight connects."""
    if len(shape) < 2:
        size = shape[0] if shape else 1
        return size, size
    field = math.prod(shape[:-2])
    return shape[-2] * field, shape[-1] * field


class Initializer(Named):
    """Base class: ``initializer(shape, dtype)`` returns a NumPy array."""

    _family = """
    Parameters
    ----------
    seed
        A seed; by default one is drawn from ``gradtape.random`` at each call.
    """

    def __init_subclass__(cls) -> None:
        complete_docstring(cls)

    def __call__(self, shape: tuple[int, ...], dtype: Any = "float32") -> NDArray[Any]:
        """Return an array of ``shape`` and ``dtype``."""
        raise NotImplementedError(f"{type(self).__name__}: define __call__(shape, dtype)")


class Zeros(Initializer):
    """All zeros."""

    def __call__(self, shape: tuple[int, ...], dtype: Any = "float32") -> NDArray[Any]:
        return np.zeros(shape, dtype)


class Ones(Initializer):
    """All ones."""

    def __call__(self, shape: tuple[int, ...], dtype: Any = "float32") -> NDArray[Any]:
        return np.ones(shape, dtype)


class Constant(Initializer):
    """One value everywhere.

    Parameters
    ----------
    value
        The number.
    """

    def __init__(self, value: float = 0.0) -> None:
        self.value = value

    def __call__(self, shape: tuple[int, ...], dtype: Any = "float32") -> NDArray[Any]:
        return np.full(shape, self.value, dtype)


class _Random(Initializer):
    """Base class of random initializers; with a seed, each call gives the same values."""

    _gradtape_internal = "*"

    seed: int | None

    def __call__(self, shape: tuple[int, ...], dtype: Any = "float32") -> NDArray[Any]:
        seed = draw_seed() if self.seed is None else self.seed
        generator = np.random.Generator(np.random.Philox(key=seed))
        return np.asarray(self.draw(generator, shape)).astype(dtype)

    def draw(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Any:
        """Return float64 values."""
        raise NotImplementedError


class RandomNormal(_Random):
    """Normally distributed values.

    Parameters
    ----------
    mean, stddev
        The mean and standard deviation of the distribution.
    """

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None) -> None:
        self.mean, self.stddev, self.seed = mean, stddev, seed

    def draw(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Any:
        return generator.normal(self.mean, self.stddev, shape)


class RandomUniform(_Random):
    """Uniformly distributed values in ``[minval, maxval)``.

    Parameters
    ----------
    minval, maxval
        The range.
    """

    def __init__(
        self, minval: float = -0.05, maxval: float = 0.05, seed: int | None = None
    ) -> None:
        self.minval, self.maxval, self.seed = minval, maxval, seed

    def draw(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Any:
        return generator.uniform(self.minval, self.maxval, shape)


class TruncatedNormal(_Random):
    """Normally distributed values; those beyond two standard deviations are drawn again.

    Parameters
    ----------
    mean, stddev
        The mean and standard deviation of the distribution before truncation.
    """

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None) -> None:
        self.mean, self.stddev, self.seed = mean, stddev, seed

    def draw(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Any:
        return self.mean + self.stddev * _cut_normal(generator, shape)


def _cut_normal(generator: np.random.Generator, shape: tuple[int, ...]) -> Any:
    values = np.asarray(generator.standard_normal(shape))
    while (far := np.abs(values) > 2.0).any():
        values[far] = generator.standard_normal(int(far.sum()))
    return values


class VarianceScaling(_Random):
    """Values with a variance of ``scale`` divided by a weight's number of connections.

    Parameters
    ----------
    scale
        The factor, 1 by default.
    mode
        The connections to count: ``"fan_in"``, the default, for inputs, ``"fan_out"`` for outputs,
        or ``"fan_avg"`` for the mean of both.
    distribution
        ``"truncated_normal"``, the default, ``"untruncated_normal"`` or ``"uniform"``.
    """

    _gradtape_internal = "distribution mode scale"

    scale: float = 1.0
    mode: str = "fan_in"
    distribution: str = "truncated_normal"

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: int | None = None,
    ) -> None:
        known = ("fan_in", "fan_out", "fan_avg")
        kinds = ("truncated_normal", "untruncated_normal", "uniform")
        if not scale > 0 or mode not in known or distribution not in kinds:
            raise ValueError(
                f"VarianceScaling: scale must be positive, mode one of {', '.join(known)} and "
                f"distribution one of {', '.join(kinds)}, got {scale!r}, {mode!r}, {distribution!r}"
            )
        self.scale, self.mode, self.distribution = float(scale), mode, distribution
        self.seed = seed

    def draw(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Any:
        inputs, outputs = fans(shape)
        fan = {"fan_in": inputs, "fan_out": outputs, "fan_avg": (inputs + outputs) / 2}[self.mode]
        variance = self.scale / max(1.0, fan)
        if self.distribution == "uniform":
            limit = math.sqrt(3.0 * variance)
            return generator.uniform(-limit, limit, shape)
        if self.distribution == "untruncated_normal":
            return generator.normal(0.0, math.sqrt(variance), shape)
        return _cut_normal(generator, shape) * (math.sqrt(variance) / _CUT_STDDEV)


class _Scaled(VarianceScaling):
    """Base class of those whose only setting is the seed."""

    def __init__(self, seed: int | None = None) -> None:
        self.seed = seed


class GlorotUniform(_Scaled):
    """Uniform in ``±sqrt(6 / (inputs + outputs))`` (Glorot and Bengio, 2010)."""

    mode, distribution = "fan_avg", "uniform"


class GlorotNormal(_Scaled):
    """Normal with variance ``2 / (inputs + outputs)``, cut off at two standard deviations."""

    mode = "fan_avg"


class HeUniform(_Scaled):
    """Uniform in ``±sqrt(6 / inputs)`` (He et al., 2015)."""

    scale, distribution = 2.0, "uniform"


class HeNormal(_Scaled):
    """Normal with variance ``2 / inputs``, cut off at two standard deviations."""

    scale = 2.0


class LecunUniform(_Scaled):
    """Uniform in ``±sqrt(3 / inputs)`` (LeCun et al., 1998)."""

    distribution = "uniform"


class LecunNormal(_Scaled):
    """Normal with variance ``1 / inputs``, cut off at two standard deviations."""


class Orthogonal(_Random):
    """A matrix with orthonormal rows or columns, whichever are fewer (Saxe et al., 2014).

    All axes except the last count as one.

    Parameters
    ----------
    gain
        A factor for the matrix.
    """

    def __init__(self, gain: float = 1.0, seed: int | None = None) -> None:
        self.gain, self.seed = gain, seed

    def draw(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Any:
        if len(shape) < 2:
            raise ValueError(f"Orthogonal: weights need at least two axes, got shape {shape}")
        rows, columns = math.prod(shape[:-1]), shape[-1]
        normal = generator.standard_normal((max(rows, columns), min(rows, columns)))
        q, r = np.linalg.qr(normal)
        q *= np.sign(np.diag(r))  # otherwise they would not be uniform
        return self.gain * np.reshape(q if rows >= columns else q.T, shape)


class Identity(Initializer):
    """The identity matrix, which need not be square.

    Parameters
    ----------
    gain
        A factor for the matrix.
    """

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain

    def __call__(self, shape: tuple[int, ...], dtype: Any = "float32") -> NDArray[Any]:
        if len(shape) != 2:
            raise ValueError(f"Identity: weights need two axes, got shape {shape}")
        return self.gain * np.eye(*shape, dtype=dtype)


#: The names of gradtape's initializers; files have the first name of each.
NAMES: dict[str, type[Initializer]] = {
    snake_case(name): globals()[name]
    for name in __all__
    if name[0].isupper() and name != "Initializer"
}

#: Keras's other names for some of them.
OTHER_NAMES = {
    "normal": "random_normal",
    "one": "ones",
    "uniform": "random_uniform",
    "zero": "zeros",
}


def get(initializer: Any) -> Callable[..., Any]:
    """Return an initializer for a name, a class, ``{"name", "config"}``, or a function.

    Raises
    ------
    ValueError
        If the name is unknown.
    TypeError
        If it is none of these.
    """
    if isinstance(initializer, dict) and initializer["config"] is None:
        return _Lost(initializer["name"])
    if isinstance(initializer, (str, dict)):
        found: Callable[..., Any] = find("initializer", initializer)
        return found
    if isinstance(initializer, type) and issubclass(initializer, Initializer):
        return initializer()
    if callable(initializer):
        return initializer
    raise TypeError(
        f"an initializer is a name or a function of shape and dtype, got {initializer!r}"
    )


def serialize(initializer: Any) -> Any:
    """Return an initializer as a JSON value that :func:`get` takes.

    For a function without a name in a plugin, only the function's name is saved: the weights that
    it initialised are saved anyway.
    """
    if isinstance(initializer, (str, dict)):
        return initializer
    lost = {"name": str(getattr(initializer, "__name__", initializer)), "config": None}
    return reference("initializer", initializer) or lost


def by_name(argument: str, value: Any) -> Any:
    """Return an argument of a layer as JSON if it is an initializer, and any other as it is."""
    meant = argument.endswith("initializer") and value is not None
    return serialize(value) if meant or isinstance(value, Initializer) else value


def is_one(value: Any) -> bool:
    """Return whether an object's class is known as one of initializers."""
    named = registry().name_of("initializer", type(value)) is not None
    return isinstance(value, Initializer) or named


class _Lost:
    """Replaces a Python function that initialised the weights of a saved layer."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, shape: tuple[int, ...], dtype: Any) -> Any:
        raise ValueError(
            f"the initializer {self.__name__!r} was a Python function, which is not saved with a "
            "layer; build the layer before saving it, or set its initializer again"
        )
