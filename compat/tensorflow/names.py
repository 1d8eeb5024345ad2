"""Which of TensorFlow's names stand for which of gradtape's; docs/migration.md shows this table.

A name in :data:`ALIASES` is gradtape's own object, found when it is first asked for. Where argument
names, defaults or results differ, a module of this package defines what adapts them, marked by
:func:`adapts`.
"""

from __future__ import annotations

import difflib
import dis
import sys
from collections.abc import Callable
from importlib import import_module
from types import FrameType
from typing import Any, NamedTuple, TypeVar

import numpy as np

import gradtape

from ...core.extend import snake_case
from ...layers import activations, constraints, initializers, regularizers
from ...training import callbacks, schedules

__all__ = ["ALIASES", "INSTEAD", "NAMESPACES", "Row", "adapts", "lookup", "rows"]

T = TypeVar("T")

_PACKAGE = __name__.rpartition(".")[0]
_GUIDE = "docs/migration.md"


def _same(names: str, prefix: str = "") -> dict[str, str]:
    return {name: prefix + name for name in names.split()}


def _named(module: Any) -> dict[str, str]:
    """Return the classes of a module of layers, and their names in small letters, as Keras has."""
    path = module.__name__.partition(".")[2]
    base = path.rpartition(".")[2].capitalize()[:-1]
    small = {snake_case(name): f"{path}.{name}" for name in module.__all__ if name != base}
    return small | _same(" ".join(module.__all__), f"{path}.")


# what Keras' functions take beside the tensor, gradtape's do not: they are adapted
_ADAPTED_ACTIVATIONS = frozenset({"leaky_relu", "relu"})
# Keras has it under another name only
_RENAMED_ACTIVATIONS = frozenset({"exp"})


def _activations() -> dict[str, str]:
    """Return the activations that are the same in Keras, from the table that layers use."""
    left_out = _ADAPTED_ACTIVATIONS | _RENAMED_ACTIVATIONS
    known = {name: name for name in activations.NAMES if name not in left_out}
    return {
        name: op if op == "exp" else f"nn.{op}"
        for name, op in sorted({**known, **activations.OTHER_NAMES, "glu": "glu"}.items())
    }


_ELEMENTWISE = {
    **_same(
        "abs acos acosh add asin asinh atan atan2 atanh ceil cos cosh divide equal exp floor "
        "greater greater_equal less less_equal logical_and logical_not logical_or maximum minimum "
        "multiply negative not_equal sign sin sinh sqrt square subtract tan tanh"
    ),
    "floordiv": "floor_divide",
    "floormod": "remainder",
    "mod": "remainder",
    "sigmoid": "nn.sigmoid",
    "truediv": "divide",
}

#: By namespace, TensorFlow's name and the gradtape object that it stands for.
ALIASES: dict[str, dict[str, str]] = {
    "tf": {
        **_ELEMENTWISE,
        **_same(
            "GradientTape Tensor TensorSpec UnconnectedGradients custom_gradient init_scope "
            "recompute_grad"
        ),
        "realdiv": "divide",
    },
    "tf.math": {
        **_ELEMENTWISE,
        **_same("expm1 log log1p logical_xor nextafter reciprocal"),
        "is_finite": "isfinite",
        "is_inf": "isinf",
        "is_nan": "isnan",
        "log_sigmoid": "nn.log_sigmoid",
        "softplus": "nn.softplus",
        "softsign": "nn.softsign",
    },
    "tf.nn": _same("relu relu6 selu sigmoid softplus softsign tanh", "nn."),
    "tf.random": {"Generator": "random.Generator", "set_seed": "random.set_seed"},
    "tf.autodiff": _same("ForwardAccumulator"),
    "tf.keras.activations": {**_activations(), "serialize": "layers.activations.serialize"},
    "tf.keras.constraints": _named(constraints),
    "tf.keras.initializers": _named(initializers),
    "tf.keras.callbacks": _same(" ".join(callbacks.__all__), "training.callbacks."),
    "tf.keras.metrics": _same(
        "categorical_accuracy sparse_categorical_accuracy sparse_top_k_categorical_accuracy",
        "training.metrics.",
    ),
    "tf.keras.ops": {
        **_same(
            "abs absolute add all allclose amax amin angle any append arange arccos arccosh arcsin "
            "arcsinh arctan arctan2 arctanh argmax argmin argpartition argsort array array_split "
            "average bincount bitwise_and bitwise_invert bitwise_not bitwise_or bitwise_xor "
            "broadcast_to cbrt ceil clip concatenate cond conj conjugate copy corrcoef "
            "correlate cos cosh count_nonzero cross cumprod cumsum custom_gradient deg2rad diag "
            "diagflat diagonal diff digitize divide dot dsplit dstack einsum empty empty_like "
            "equal erf erfc exp exp2 expand_dims expm1 eye flip floor floor_divide fmod full "
            "full_like greater greater_equal heaviside hsplit hstack hypot identity imag inner "
            "isclose isfinite isinf isnan kron less less_equal linspace log log10 log1p log2 "
            "logaddexp logical_and logical_not logical_or logical_xor logspace logsumexp map "
            "matmul max maximum mean median meshgrid min minimum mod moveaxis multiply ndim "
            "negative nonzero not_equal ones ones_like outer pad power prod quantile ravel real "
            "reciprocal repeat reshape roll rot90 round scan searchsorted select shape sign "
            "signbit sin sinc sinh size sort split sqrt square squeeze stack stop_gradient "
            "subtract sum swapaxes take take_along_axis tan tanh tensordot tile trace transpose "
            "trapezoid tri tril triu true_divide trunc vdot vstack where while_loop zeros "
            "zeros_like"
        ),
        **_same(
            "celu elu gelu glu hard_shrink hard_sigmoid hard_silu hard_tanh leaky_relu log_sigmoid "
            "log_softmax relu relu6 selu segment_sum sigmoid silu soft_shrink softmax softplus "
            "softsign squareplus tanh_shrink",
            "nn.",
        ),
        **_same(
            "cholesky det eigh inv lstsq norm qr slogdet solve solve_triangular svd", "linalg."
        ),
        "swish": "nn.silu",
    },
    "tf.keras.regularizers": _named(regularizers),
    "tf.keras.optimizers.schedules": _same(" ".join(schedules.__all__), "training.schedules."),
    "tf.keras.mixed_precision": {
        **_same("LossScaleOptimizer Policy", "mixed_precision."),
        "global_policy": "mixed_precision.get_policy",
        "set_global_policy": "mixed_precision.set_policy",
    },
}

#: The namespaces, each a module of this package (``tf`` is the package itself).
NAMESPACES = (
    "tf",
    "tf.autodiff",
    "tf.dtypes",
    "tf.keras",
    "tf.keras.activations",
    "tf.keras.backend",
    "tf.keras.callbacks",
    "tf.keras.constraints",
    "tf.keras.initializers",
    "tf.keras.layers",
    "tf.keras.losses",
    "tf.keras.metrics",
    "tf.keras.mixed_precision",
    "tf.keras.models",
    "tf.keras.ops",
    "tf.keras.optimizers",
    "tf.keras.optimizers.schedules",
    "tf.keras.regularizers",
    "tf.keras.utils",
    "tf.linalg",
    "tf.math",
    "tf.nest",
    "tf.nn",
    "tf.random",
    "tf.saved_model",
    "tf.signal",
)

#: What to use where a name has no counterpart, by the name's last part.
INSTEAD = {
    "Graph": "gradtape.function(f).get_concrete_function(...).graph",
    "Lambda": "tf.keras.layers.Activation, which takes any function of a tensor",
    "Session": "eager code: ops run when they are called",
    "bfloat16": "float32, or tf.keras.mixed_precision: NumPy has no bfloat16",
    "clone_model": "copy.deepcopy(model), which keeps the weights",
    "config": "gradtape.backend('cupy') to choose a device",
    "data": "gradtape.data, arrays, or any iterable of (x, y) batches",
    "datasets": "gradtape.datasets",
    "debugging": "gradtape.debug, and assert",
    "device": "gradtape.backend('cupy:0')",
    "div": "tf.divide",
    "gradients": "gradtape.GradientTape, or gradtape.grad",
    "hessians": "gradtape.hessian",
    "io": "gradtape.save and gradtape.load",
    "mul": "tf.multiply",
    "neg": "tf.negative",
    "placeholder": "arguments of a gradtape.function",
    "print": "Python's print; a traced function prints while it is traced",
    "py_function": "a plain call: eager code is Python",
    "sub": "tf.subtract",
    "summary": "gradtape.Module.summary, or a callback of fit",
    "to_double": "tf.cast(x, tf.float64)",
    "to_float": "tf.cast(x, tf.float32)",
    "to_int32": "tf.cast(x, tf.int32)",
    "to_int64": "tf.cast(x, tf.int64)",
    "saving": "Model.save and tf.keras.models.load_model; classes need no registration",
    "train": "gradtape.training.Checkpoint and CheckpointManager",
}


class Row(NamedTuple):
    """A line of the table of names."""

    tensorflow: str
    gradtape: str
    #: ``"same"``: the same object. ``"adapted"``: TensorFlow's arguments over it.
    how: str


def adapts(*names: str) -> Callable[[T], T]:
    """Mark a function or class as what adapts these names of gradtape."""

    def mark(adapter: T) -> T:
        adapter.gradtape_names = names  # type: ignore[attr-defined]
        return adapter

    return mark


def rows() -> list[Row]:
    """Return the table: every public name of every namespace, in order."""
    found = [
        Row(f"{namespace}.{name}", f"gradtape.{path}", "same")
        for namespace, names in ALIASES.items()
        for name, path in names.items()
    ]
    for namespace in NAMESPACES:
        module = module_of(namespace)
        for name in module.__all__:
            value = getattr(module, name)
            if not isinstance(value, type(sys)):
                known = getattr(value, "gradtape_names", ())
                if isinstance(value, np.dtype) and value.name in dir(gradtape):
                    known = (value.name,)
                listed = ", ".join(f"gradtape.{path}" for path in known)
                found.append(Row(f"{namespace}.{name}", listed, "adapted"))
    return sorted(set(found))


def module_of(namespace: str) -> Any:
    """Return the module of a namespace."""
    return import_module(_PACKAGE + namespace.removeprefix("tf"))


def lookup(module_name: str) -> Callable[[str], Any]:
    """Return a module's ``__getattr__``: gradtape's object for an alias, or else an error.

    Raises
    ------
    AttributeError
        By the function, for a name without counterpart; the message has the nearest one.
    ImportError
        With the same message, where the name is imported from the module.
    """
    namespace = "tf" + module_name.removeprefix(_PACKAGE)
    known = ALIASES.get(namespace, {})

    def __getattr__(name: str) -> Any:
        if name not in known:
            if name.startswith("__"):
                raise AttributeError(f"module {module_name!r} has no attribute {name!r}")
            # of an AttributeError an import statement would only keep that there is no such name
            wrong = ImportError if _is_import(sys._getframe(1)) else AttributeError
            raise wrong(_absent(namespace, name))
        value = resolve(known[name])
        setattr(sys.modules[module_name], name, value)  # not asked for again
        return value

    return __getattr__


def _is_import(frame: FrameType) -> bool:
    """Return whether a frame is at the statement ``from module import name``."""
    return frame.f_code.co_code[frame.f_lasti] == dis.opmap["IMPORT_FROM"]


def resolve(path: str) -> Any:
    """Return the gradtape object of a dotted name."""
    value: Any = gradtape
    for part in path.split("."):
        value = getattr(value, part)
    return value


def _absent(namespace: str, name: str) -> str:
    said = f"gradtape has no {namespace}.{name}"
    if name in INSTEAD:
        return f"{said}; use {INSTEAD[name]} (see {_GUIDE})"
    names = {part.lower(): f"gradtape.{part}" for part in dir(gradtape) if part[0] != "_"}
    for family in ("training", "layers", "random", "fft", "nn", "linalg"):
        parts = getattr(getattr(gradtape, family), "__all__", ())
        names |= {part.lower(): f"gradtape.{family}.{part}" for part in parts}
    # what stands beside it is meant rather than what is elsewhere
    names |= {part.lower(): f"{namespace}.{part}" for part in module_of(namespace).__all__}
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.7)
    near = near or sorted((part for part in names if part in name.lower()), key=len)[-1:]
    nearest = f"; the nearest name is {names[near[0]]}" if near and len(near[0]) > 2 else ""
    return f"{said}{nearest} (see {_GUIDE} for what there is)"
