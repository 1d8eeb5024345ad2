"""``tf.keras.layers``: gradtape's layers with the constructors and conventions of Keras 3.

Other than gradtape's, these compute in float32 whatever they are given, unless a policy of
``tf.keras.mixed_precision`` says otherwise.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import gradtape

from ....core.extend import are_several, calling_in, map_structure
from ..dtypes import as_dtype
from ..names import adapts, lookup
from ..tensors import Standing, sizes

__all__ = [
    "Activation",
    "BatchNormalization",
    "Dense",
    "Dropout",
    "Flatten",
    "Input",
    "Layer",
]


def _calling(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return Keras' ``__call__`` over gradtape's: it casts inputs, and takes ``training``."""
    takes_training = "training" in inspect.signature(call).parameters

    def __call__(
        self: Any, inputs: Any = None, *args: Any, training: Any = None, **kwargs: Any
    ) -> Any:
        if self.takes_one and are_several(inputs):
            raise TypeError(
                f"{type(self).__name__} {self.name!r} takes one tensor, got a "
                f"{type(inputs).__name__} of {len(inputs)}; join them, as with tf.concat or "
                "tf.stack"
            )
        if self.dtype is not None and not self.policy.mixed:  # which casts them itself
            inputs = map_structure(lambda x: _cast(x, self.dtype), inputs)
        if training is None:
            return call(self, inputs, *args, **kwargs)
        if takes_training and not args:
            return call(self, inputs, *args, training=training, **kwargs)
        with calling_in(training):
            return call(self, inputs, *args, **kwargs)

    __call__.adapted = True  # type: ignore[attr-defined]
    return __call__


def _cast(x: Any, dtype: str) -> Any:
    kind = getattr(x, "dtype", None)
    if kind is None or kind.kind != "f" or kind == dtype:
        return x
    return gradtape.as_tensor(x).astype(dtype)


def _own_call(cls: type) -> Any:
    return next((c.__dict__["__call__"] for c in cls.__mro__ if "__call__" in c.__dict__), None)


@adapts("layers.Layer")
class Layer(gradtape.layers.Layer, metaclass=Standing):
    """Base class of layers: ``build(input_shape)`` makes weights, ``call(inputs)`` uses them.

    Parameters
    ----------
    activity_regularizer
        Not supported.
    trainable
        Whether the layer's weights train.
    dtype
        That of the weights, and to which floating inputs are cast; ``float32`` by default.
    autocast
        Whether inputs are cast.
    name
        A Python identifier.
    other
        ``input_shape`` or ``input_dim``, from which a ``Sequential`` is built. Anything else is an
        error.
    """

    stands_for = gradtape.layers.Layer
    takes_one = False  # whether several inputs would be a mistake
    dtype: str | None = "float32"

    def __init__(
        self,
        *,
        activity_regularizer: Any = None,
        trainable: bool = True,
        dtype: Any = None,
        autocast: bool = True,
        name: str | None = None,
        **other: Any,
    ) -> None:
        gradtape.layers.Layer.__init__(self, name, _dtype(dtype))
        self._finish(trainable, {"activity_regularizer": activity_regularizer, **other})

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        call = _own_call(cls)
        if call is not None and not hasattr(call, "adapted"):
            cls.__call__ = _calling(call)  # type: ignore[method-assign]

    def _finish(self, trainable: bool, other: dict[str, Any]) -> None:
        """Take Keras' further arguments; refuse those that would make a difference."""
        given = {key: value for key, value in other.items() if value is not None}
        shape = given.pop("input_shape", None)
        if "input_dim" in given:
            shape = (given.pop("input_dim"),)
        given.pop("autocast", None)
        if given:
            raise TypeError(
                f"{type(self).__name__}: {', '.join(sorted(given))} not supported by gradtape; "
                "see docs/migration.md"
            )
        state = vars(self)
        state["_gradtape_input_shape"] = shape
        if not trainable:
            self.trainable = False

    # -- weights ---------------------------------------------------------------------------------

    def add_weight(
        self,
        shape: Any = (),
        initializer: Any = None,
        name: str | None = None,
        trainable: bool = True,
        dtype: Any = None,
        *,
        autocast: bool = True,
        regularizer: Any = None,
        constraint: Any = None,
        aggregation: str = "none",
    ) -> Any:
        """Return a new variable, to be kept as an attribute of the layer.

        Parameters
        ----------
        shape
            The shape.
        initializer
            A name, an object of ``tf.keras.initializers``, or a function of shape and dtype;
            ``"glorot_uniform"`` for floats by default, else ``"zeros"``.
        name
            The variable's name.
        trainable
            Whether it trains.
        dtype
            The dtype; by default the layer's own.
        regularizer, constraint
            Not supported.
        autocast, aggregation
            Ignored.
        """
        if regularizer is not None or constraint is not None:
            raise TypeError("add_weight: regularizer and constraint are not supported")
        kind = as_dtype(dtype or self.dtype or "float32")
        if initializer is None:
            initializer = "glorot_uniform" if kind.kind == "f" else "zeros"
        return super().add_weight(
            sizes(shape, "add_weight"), initializer, name or "weight", trainable, kind
        )

    @property
    def built(self) -> bool:
        """Whether the weights are there; ``build`` may set it, and need not."""
        return super().built

    @built.setter
    def built(self, value: bool) -> None:
        self.mark_built(value)

    @property
    def variables(self) -> list[Any]:  # type: ignore[override]
        """All variables, in a list."""
        return list(super().variables)

    @property
    def trainable_variables(self) -> list[Any]:  # type: ignore[override]
        """The variables that train, in a list."""
        return list(super().trainable_variables)

    @property
    def non_trainable_variables(self) -> list[Any]:
        """The variables that do not train, in a list."""
        return [v for v in self.variables if not v.trainable]

    weights = variables
    trainable_weights = trainable_variables
    non_trainable_weights = non_trainable_variables


def _dtype(dtype: Any) -> str:
    """Return a dtype, or the name of a mixed policy: of the one in force if nothing is given."""
    policy = gradtape.mixed_precision.get_policy() if dtype is None else dtype
    if isinstance(policy, gradtape.mixed_precision.Policy):
        return policy.name
    mixed = isinstance(dtype, str) and dtype.startswith("mixed_")
    return gradtape.mixed_precision.Policy(dtype).name if mixed else as_dtype(dtype).name


def _unlike_the_default(dtype: Any) -> str | None:
    """Return the dtype of a layer without weights, if files have to say it."""
    name = _dtype(dtype)
    mixed = gradtape.mixed_precision.get_policy().mixed or name.startswith("mixed_")
    return name if mixed else None


@adapts("layers.Dense")
class Dense(Layer, gradtape.layers.Dense):
    """``activation(inputs @ kernel + bias)``; see :class:`gradtape.layers.Dense`.

    Parameters
    ----------
    units, activation, use_bias, kernel_initializer, bias_initializer
        As in gradtape.
    dtype, name, trainable, other
        As for :class:`Layer`.
    """

    takes_one = True

    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        *,
        dtype: Any = None,
        name: str | None = None,
        trainable: bool = True,
        **other: Any,
    ) -> None:
        gradtape.layers.Dense.__init__(
            self,
            units,
            activation,
            use_bias,
            kernel_initializer,
            bias_initializer,
            _dtype(dtype),
            name,
        )
        self._finish(trainable, other)


@adapts("layers.BatchNormalization")
class BatchNormalization(Layer, gradtape.layers.BatchNormalization):
    """Batch normalisation; see :class:`gradtape.layers.BatchNorm`.

    Parameters
    ----------
    axis, momentum, epsilon, center, scale
        As in gradtape.
    dtype, name, trainable, other
        As for :class:`Layer`. Initializers other than Keras' defaults are not supported.
    """

    takes_one = True

    def __init__(
        self,
        axis: int = -1,
        momentum: float = 0.99,
        epsilon: float = 0.001,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        moving_mean_initializer: Any = "zeros",
        moving_variance_initializer: Any = "ones",
        *,
        dtype: Any = None,
        name: str | None = None,
        trainable: bool = True,
        **other: Any,
    ) -> None:
        given = [beta_initializer, gamma_initializer]
        given += [moving_mean_initializer, moving_variance_initializer]
        if given != ["zeros", "ones", "zeros", "ones"]:
            raise TypeError("BatchNormalization: other initializers are not supported")
        gradtape.layers.BatchNormalization.__init__(
            self, axis, momentum, epsilon, center, scale, name, _dtype(dtype)
        )
        self._finish(trainable, other)


@adapts("layers.Dropout")
class Dropout(Layer, gradtape.layers.Dropout):
    """Drop elements while training; see :class:`gradtape.layers.Dropout`.

    Parameters
    ----------
    rate, seed
        As in gradtape.
    noise_shape
        Not supported.
    dtype, name, other
        As for :class:`Layer`.
    """

    takes_one = True

    def __init__(
        self,
        rate: float,
        noise_shape: Any = None,
        seed: int | None = None,
        *,
        dtype: Any = None,
        name: str | None = None,
        **other: Any,
    ) -> None:
        gradtape.layers.Dropout.__init__(self, rate, seed, name, _unlike_the_default(dtype))
        self.dtype = self.dtype or _dtype(dtype)
        self._finish(True, {"noise_shape": noise_shape, **other})


@adapts("layers.Flatten")
class Flatten(Layer, gradtape.layers.Flatten):
    """Flatten every axis but the first; see :class:`gradtape.layers.Flatten`.

    Parameters
    ----------
    data_format
        Not supported but for ``"channels_last"``.
    dtype, name, other
        As for :class:`Layer`.
    """

    takes_one = True

    def __init__(
        self,
        data_format: str | None = None,
        *,
        dtype: Any = None,
        name: str | None = None,
        **other: Any,
    ) -> None:
        gradtape.layers.Flatten.__init__(self, name, _unlike_the_default(dtype))
        self.dtype = self.dtype or _dtype(dtype)
        plain = data_format in (None, "channels_last")
        self._finish(True, {"data_format": None if plain else data_format, **other})


@adapts("layers.Activation")
class Activation(Layer, gradtape.layers.Activation):
    """Apply an activation; see :class:`gradtape.layers.Activation`.

    Parameters
    ----------
    activation
        A name or a function.
    dtype, name, other
        As for :class:`Layer`.
    """

    takes_one = True

    def __init__(
        self, activation: Any, *, dtype: Any = None, name: str | None = None, **other: Any
    ) -> None:
        gradtape.layers.Activation.__init__(self, activation, name, _unlike_the_default(dtype))
        self.dtype = self.dtype or _dtype(dtype)
        self._finish(True, other)


@adapts()
class Input:
    """What a ``Sequential`` begins with, so that it can be built before its first call.

    Parameters
    ----------
    shape
        The shape of one example.
    batch_size
        Ignored.
    dtype
        The dtype of examples.
    name
        Ignored.

    Raises
    ------
    TypeError
        When a layer is called with it: models are made by ``Sequential`` or by subclassing
        ``Model``.
    """

    def __init__(
        self,
        shape: Any = None,
        batch_size: int | None = None,
        dtype: Any = None,
        name: str | None = None,
        **other: Any,
    ) -> None:
        self.shape = tuple(shape or ())
        self.dtype = as_dtype("float32" if dtype is None else dtype)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            "layers are not called with tf.keras.Input here: make the model with "
            "tf.keras.Sequential, or subclass tf.keras.Model (see docs/migration.md)"
        )


__getattr__ = lookup(__name__)
