"""``tf.keras.layers``: gradtape's layers with the constructors and conventions of Keras 3.

Unlike gradtape's, these cast floating inputs to float32, unless ``dtype`` or a policy of
``tf.keras.mixed_precision`` says otherwise.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import gradtape

from ....core.extend import calling_in, map_structure, overridable
from ....layers.base.weights import Rules
from ..dtypes import as_dtype
from ..names import adapts, lookup, resolve
from ..tensors import InstanceMeta, Variable, sizes
from .adapting import adapted, arguments_of, by_order, refuse
from .functions import floatx, unique

__all__ = ["Input", "InputLayer", "Layer"]

#: Keras's order of arguments where it differs; all others are keyword-only.
_ORDERS = {
    "AdditiveAttention": "use_scale dropout",
    "AlphaDropout": "rate noise_shape seed",
    "BatchNormalization": "axis momentum epsilon center scale beta_initializer gamma_initializer "
    "moving_mean_initializer moving_variance_initializer",
    "Conv3DTranspose": "filters kernel_size strides padding data_format output_padding "
    "dilation_rate activation use_bias kernel_initializer bias_initializer",
    "Dropout": "rate noise_shape seed",
    "Flatten": "data_format",
    "GroupNormalization": "groups axis epsilon center scale beta_initializer gamma_initializer",
    "MultiHeadAttention": "num_heads key_dim value_dim dropout use_bias output_shape "
    "attention_axes",
    "SpatialDropout1D": "rate seed",
    "SpatialDropout2D": "rate data_format seed",
    "SpatialDropout3D": "rate data_format seed",
}
#: Keras's defaults where gradtape's differ or are missing.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "Cropping2D": {"cropping": 0},
}


#: Set on a layer while its class's own ``trainable_weights`` is read.
_CHOOSING = "_gradtape_choosing"
#: The order of ``add_weight``'s arguments in Keras 2.
_KERAS_2 = "name shape dtype initializer regularizer trainable constraint"


@adapts("Input")
def Input(
    shape: Any = None,
    batch_size: int | None = None,
    dtype: Any = None,
    sparse: Any = None,
    ragged: Any = None,
    batch_shape: Any = None,
    name: str | None = None,
    tensor: Any = None,
    optional: bool = False,
) -> Any:
    """Return a placeholder for an input of a model; see :func:`gradtape.Input`."""
    others = {"sparse": sparse, "ragged": ragged, "tensor": tensor, "optional": optional}
    refuse("Input", others)
    shape = (shape,) if isinstance(shape, int) else shape
    return gradtape.Input(shape, batch_size, dtype or floatx(), name, batch_shape)


def _calling(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return Keras's ``__call__`` over gradtape's, which casts inputs and takes ``training``."""
    known = inspect.signature(call)
    takes_training = "training" in known.parameters

    def __call__(
        self: Any, inputs: Any = None, /, *args: Any, training: Any = None, **kwargs: Any
    ) -> Any:
        if self.dtype is not None and not self.policy.mixed:  # a mixed policy casts inputs itself
            given = inputs, args, kwargs
            inputs, args, kwargs = map_structure(lambda x: _cast(x, self.dtype), given)
        if training is None:
            return call(self, inputs, *args, **kwargs)
        if takes_training and not args:
            return call(self, inputs, *args, training=training, **kwargs)
        with calling_in(training):
            return call(self, inputs, *args, **kwargs)

    # models read the signature to see whether a layer takes a mask
    vars(__call__).update(vars(call), adapted=True)
    vars(__call__)["__signature__"] = known if takes_training else _with_training(known)
    return __call__


def _with_training(known: inspect.Signature) -> inspect.Signature:
    """Add ``training`` to a signature."""
    *first, last = known.parameters.values()
    training = inspect.Parameter("training", inspect.Parameter.KEYWORD_ONLY, default=None)
    rest = [last, training] if last.kind is not last.VAR_KEYWORD else [training, last]
    return known.replace(parameters=[*first, *rest])


def _cast(x: Any, dtype: str) -> Any:
    kind = getattr(x, "dtype", None)
    if kind is None or kind.kind != "f" or kind == dtype:
        return x
    return gradtape.as_tensor(x).astype(dtype)


def _of_weights(dtype: Any) -> str:
    """Return the dtype of weights for a dtype or a policy."""
    policy = gradtape.mixed_precision.Policy
    if isinstance(dtype, str) and dtype.startswith("mixed_"):
        dtype = policy(dtype)
    return dtype.variable_dtype if isinstance(dtype, policy) else as_dtype(dtype).name


def _own_call(cls: type) -> Any:
    return next((c.__dict__["__call__"] for c in cls.__mro__ if "__call__" in c.__dict__), None)


@adapts("layers.Layer")
class Layer(gradtape.layers.Layer, metaclass=InstanceMeta):
    """Base class of layers: ``build(input_shape)`` makes weights, ``call(inputs)`` uses them.

    Parameters
    ----------
    options
        ``name``; ``trainable``, whether the weights train; ``dtype``, a policy of
        ``tf.keras.mixed_precision`` or the dtype of weights, to which floating inputs are cast,
        ``float32`` by default; ``input_shape`` or ``input_dim``, from which a ``Sequential`` is
        built. Any other option is an error.
    """

    stands_for = gradtape.layers.Layer
    _gradtape_any_name = True
    dtype: str | None = "float32"

    def __init__(self, *, name: str | None = None, **options: Any) -> None:
        gradtape.layers.Layer.__init__(self, name, options.pop("dtype", None))
        self.take_options(options)

    @classmethod
    def _gradtape_default_name(cls) -> str:
        return unique(cls.__name__)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        call = _own_call(cls)
        if call is not None and not hasattr(call, "adapted"):
            cls.__call__ = _calling(call)  # type: ignore[method-assign]

    def take_options(self, options: dict[str, Any]) -> None:
        """Take Keras's further options; refuse those that gradtape lacks."""
        given = {"trainable": True, **options}
        dtype = given.pop("dtype", None)  # None for a layer whose parts have their own
        self.dtype = (self.dtype or floatx()) if dtype is None else _of_weights(dtype)
        shape, size = given.pop("input_shape", None), given.pop("input_dim", None)
        vars(self)["_gradtape_input_shape"] = shape if size is None else (size,)
        if not given.pop("trainable"):
            self.trainable = False
        refuse(type(self).__name__, {**given, "autocast": None})

    def add_weight(self, *args: Any, **given: Any) -> Any:
        """Return a new variable, which you assign to an attribute of the layer.

        By default, ``initializer`` is ``"glorot_uniform"`` for floats, otherwise ``"zeros"``. A
        name may come first, as in Keras 2. ``autocast`` and others are ignored.
        """
        given |= by_order(args, "shape initializer name trainable dtype", _KERAS_2)
        kind = as_dtype(given.get("dtype") or self.dtype or floatx())
        usual = "glorot_uniform" if kind.kind == "f" else "zeros"
        made = super().add_weight(
            sizes(given.get("shape") or (), "add_weight"),
            given.get("initializer") or usual,
            given.get("name") or "weight",
            given.get("trainable", True) is not False,
            kind,
            regularizer=given.get("regularizer"),
            constraint=given.get("constraint"),
        )
        made.__class__ = Variable  # with TensorFlow's methods
        return made

    add_variable = add_weight

    @property
    def built(self) -> bool:
        """Whether the weights exist; ``build`` may set it."""
        return super().built

    @built.setter
    def built(self, value: bool) -> None:
        self.mark_built(value)

    @overridable
    def output_shape(self) -> Any:
        """The shape of its output in the model that it is part of."""
        return map_structure(lambda x: x.shape, self.output)

    @overridable
    def input_shape(self) -> Any:
        """The shape of its input in the model that it is part of."""
        return map_structure(lambda x: x.shape, self.input)

    def _own(self, found: Iterable[Any]) -> list[Any]:
        """Return variables, without those of attributes that are optimizers or metrics."""
        others = [part for part in self.submodules if isinstance(part, _NO_LAYERS)]
        left_out = {v.id for part in others for v in part.variables}
        return [v for v in found if v.id not in left_out]

    @property
    def variables(self) -> list[Any]:  # type: ignore[override]
        """All variables in a list, without those of optimizers and metrics."""
        return self._own(super().variables)

    @property
    def trainable_variables(self) -> list[Any]:  # type: ignore[override]
        """The trainable variables in a list."""
        chosen = type(self).trainable_weights is not Layer.trainable_weights
        if chosen and _CHOOSING not in vars(self):  # a subclass says what trains, as in Keras
            vars(self)[_CHOOSING] = True  # it may choose among all
            try:
                return list(self.trainable_weights)
            finally:
                del vars(self)[_CHOOSING]
        return [v for v in self.variables if v.trainable] if self.trainable else []

    @property
    def non_trainable_variables(self) -> list[Any]:
        """The variables in a list that do not train."""
        return [v for v in self.variables if not v.trainable]

    @property
    def weights(self) -> list[Any]:
        """The weights, without those of optimizers and metrics."""
        return self._own(super().weights)

    @property
    def trainable_weights(self) -> list[Any]:
        """The weights that train."""
        return [v for v in self.weights if v.trainable] if self.trainable else []

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The weights that do not train."""
        return [v for v in self.weights if not (v.trainable and self.trainable)]


@adapts("Input")
class InputLayer(Layer):
    """An input of a model as a layer: the first of a ``Sequential``, or one of ``model.layers``."""

    def __init__(self, *args: Any, input_shape: Any = None, name: Any = None, **given: Any) -> None:
        super().__init__(name=name)
        if input_shape is not None:
            given["shape"] = input_shape
        held = args[0] if args and isinstance(args[0], gradtape.Tensor) else Input(*args, **given)
        vars(self)["_gradtape_placeholder"] = held

    @property
    def output(self) -> Any:
        """The placeholder."""
        return vars(self)["_gradtape_placeholder"]

    input = output

    def get_config(self) -> dict[str, Any]:
        """Return the shape, the dtype and the name."""
        x = self.output
        return {"batch_shape": tuple(x.shape), "dtype": x.dtype.name, "name": self.name}

    def call(self, x: Any) -> Any:
        """Return the input."""
        return x


_NO_LAYERS = (gradtape.training.Optimizer, gradtape.training.metrics.Metric)


class _IntegerInputs(Layer):
    """A layer that takes integers: floats, the default dtype of model inputs, are truncated."""

    def take_options(self, options: dict[str, Any]) -> None:
        """Take Keras's further options; ``input_length`` has no meaning since Keras 3."""
        super().take_options({k: x for k, x in options.items() if k != "input_length"})

    def call(self, x: Any) -> Any:
        """Return a vector per integer."""
        native: Any = super()
        return native.call(x.astype("int32") if x.dtype.kind == "f" else x)


class _Cell(Layer):
    """A cell of a recurrent layer."""

    def get_initial_state(self, batch_size: Any = None, dtype: Any = None) -> list[Any]:
        """Return the states before the first step: zeros with ``batch_size`` rows."""
        sizes_of: Any = self
        kind = as_dtype(dtype or self.dtype or floatx())
        return [gradtape.zeros((int(batch_size), n), kind) for n in sizes_of.state_size]


def _layer(name: str) -> Any:
    path = f"layers.{name}"
    known = [argument for argument in arguments_of(path) if argument not in ("name", "dtype")]
    own = [argument for argument in known if argument not in Rules.__annotations__]
    last = max((i for i, x in enumerate(own) if x.endswith("initializer")), default=len(own))
    order = _ORDERS.get(name, " ".join(own[: last + 1])).split()
    # the layer itself refuses regularizers and constraints that it does not have
    others = set(Rules.__annotations__).difference(resolve(path)._rules())
    further = [argument for argument in known if argument not in (*order, *others)]
    order += ["*", *further, "name", "dtype", "**"]
    base = _IntegerInputs if name == "Embedding" else _Cell if name.endswith("Cell") else Layer
    return adapted(path, " ".join(order), base, **_DEFAULTS.get(name, {}))


def _merging(kind: Any) -> Any:
    """Return the function for a merging layer, as in Keras."""
    known = inspect.signature(kind)
    first = inspect.Parameter("inputs", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    usual = {"axes": -1} if "axes" in known.parameters else {}  # which Dot requires
    rest = [p.replace(default=usual.get(p.name, p.default)) for p in known.parameters.values()]
    signature = known.replace(parameters=[first, *rest])

    @adapts(*kind.gradtape_names)
    def merge(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.arguments = {**usual, **bound.arguments}
        inputs = bound.arguments.pop("inputs")
        options = bound.arguments.pop("others", {})
        return kind(**bound.arguments, **options)(inputs)

    merge.__name__ = merge.__qualname__ = kind.__name__.lower()
    merge.__doc__ = f"Apply :class:`{kind.__name__}` to ``inputs``."
    vars(merge)["__signature__"] = signature
    return merge


_NOT_HERE = ("BatchNorm", "Input", "Layer", "Model", "Sequential")
_KNOWN = {
    name: _layer(name)
    for name in gradtape.layers.__all__
    if name not in _NOT_HERE and isinstance(getattr(gradtape.layers, name), type)
}
_KNOWN |= {
    name.replace("Pooling", "Pool").replace("Average", "Avg"): kind
    for name, kind in _KNOWN.items()
    if "Pooling" in name
}
_MERGING = "Add Average Concatenate Dot Maximum Minimum Multiply Subtract"
_KNOWN |= {name.lower(): _merging(_KNOWN[name]) for name in _MERGING.split()}
globals().update(_KNOWN)
__all__ += _KNOWN
__getattr__ = lookup(__name__)
