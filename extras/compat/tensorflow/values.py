"""Values that are no plain tensors: texts, sparse tensors, nests and pipelines; and checks."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import gradtape

from ...core import extend
from ...core.extend import flatten
from .dtypes import as_dtype, string
from .names import adapts
from .tensors import constant, convert_to_tensor, sizes, with_checked_shape

# -- tf.strings ------------------------------------------------------------------------------------


def texts(value: Any) -> Any:
    """Return text as an array of bytes."""
    held = value if hasattr(value, "array") else constant(value, string)
    return np.asarray(held.array)


def each_text(function: Callable[..., Any], *values: Any, dtype: Any = object) -> Any:
    """Apply a function to each text."""
    found = np.vectorize(function, otypes=[dtype])(*values)
    return constant(np.asarray(found, dtype), string if dtype is object else None)


def as_string(
    input: Any,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: Any = None,
) -> Any:
    """Return numbers as text, with ``precision`` digits after the point."""
    x = convert_to_tensor(input).numpy()
    kind = "e" if scientific else "f" if x.dtype.kind == "f" and not shortest else ""
    digits = f".{precision if precision >= 0 else 6}" if kind else ""
    wide = f"{fill}{width}" if width > 0 else ""
    return each_text(lambda n: f"{{:{wide}{digits}{kind}}}".format(n).encode(), x)


def format(template: str, inputs: Any, placeholder: str = "{}", summarize: int = 3) -> Any:
    """Return ``template`` with each ``placeholder`` replaced by a tensor."""
    parts = inputs if isinstance(inputs, (list, tuple)) else [inputs]
    text = template
    for part in parts:
        text = text.replace(placeholder, shown(part, summarize), 1)
    return constant(text)


def shown(value: Any, summarize: int | None = 3) -> str:
    """Return a value as TensorFlow prints it: ``summarize`` elements at each end of an axis."""
    if isinstance(value, (list, tuple)):
        ends = "[]" if isinstance(value, list) else "()"
        return f"{ends[0]}{', '.join(shown(x, summarize) for x in value)}{ends[1]}"
    if isinstance(value, dict):
        inner = (f"{key!r}: {shown(x, summarize)}" for key, x in value.items())
        return f"{{{', '.join(inner)}}}"
    if not hasattr(value, "numpy") and not isinstance(value, np.ndarray):
        return str(value)
    x = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    if x.dtype == object:
        x = np.vectorize(lambda b: b.decode(), otypes=[object])(x)
        return str(x[()]) if not x.ndim else f"[{' '.join(map(repr, x.tolist()))}]"
    few = 3 if summarize is None else summarize
    cut: Any = {"threshold": x.size + 1 if few < 0 else 0, "edgeitems": abs(few)}
    return np.array2string(x, formatter={"float_kind": _shortest}, **cut)


def _shortest(value: Any) -> str:
    """Return a float with as many digits as identify it."""
    few = f"{value:.6g}"
    return few if type(value)(few) == value else f"{value:.{9 if value.itemsize < 8 else 17}g}"


# -- tf.sparse -------------------------------------------------------------------------------------


class SparseTensor(NamedTuple):
    """Elements with indices ``(n, rank)`` and values ``(n,)``; all others are 0."""

    indices: Any
    values: Any
    dense_shape: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the dense tensor."""
        return sizes(self.dense_shape, "SparseTensor")

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return convert_to_tensor(self.values).dtype


@adapts("at")
def to_dense(sp_input: Any, default_value: Any = 0, *options: Any, name: Any = None) -> Any:
    """Return a dense tensor, with ``default_value`` for missing elements."""
    empty = gradtape.full(sp_input.shape, default_value or 0, sp_input.dtype)
    places = tuple(gradtape.unstack(convert_to_tensor(sp_input.indices), -1))
    return empty.at[places].set(sp_input.values)


@adapts("argwhere")
def from_dense(tensor: Any, name: Any = None) -> SparseTensor:
    """Return the nonzero elements as a sparse tensor."""
    x = convert_to_tensor(tensor)
    places = gradtape.argwhere(gradtape.not_equal(x, 0))
    return SparseTensor(places, x[tuple(gradtape.unstack(places, -1))], np.array(x.shape))


def dense(x: Any) -> Any:
    """Return a sparse or dense tensor as a dense one."""
    return to_dense(x) if isinstance(x, SparseTensor) else convert_to_tensor(x)


# -- tf.nest ---------------------------------------------------------------------------------------


@adapts("core.extend.pack_like")
def pack_sequence_as(
    structure: Any, flat_sequence: Sequence[Any], expand_composites: bool = False
) -> Any:
    """Return the leaves in a container with the given structure."""
    wanted = len(extend.flatten(structure))
    if len(flat_sequence) != wanted:
        raise ValueError(
            f"pack_sequence_as: got {len(flat_sequence)} leaves, but the structure has {wanted}"
        )
    return extend.pack_like(structure, list(flat_sequence))


@adapts("core.extend.map_structure")
def map_structure(func: Callable[..., Any], *structure: Any, **options: Any) -> Any:
    """Apply ``func`` to the leaves of one structure, or to corresponding leaves of several."""
    for other in structure[1:]:
        assert_same_structure(structure[0], other)
    leaves = zip(*map(extend.flatten, structure), strict=True)
    return extend.pack_like(structure[0], [func(*together) for together in leaves])


@adapts("core.extend.structure")
def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True) -> None:
    """Raise ``ValueError`` if the structures differ."""
    if extend.structure(nest1) != extend.structure(nest2):
        raise ValueError(
            f"the structures differ: {extend.structure(nest1)} and {extend.structure(nest2)}"
        )


# -- tf.debugging ----------------------------------------------------------------------------------


def ensure(holds: Any, message: str, *values: Any) -> Any:
    """Return the first value; raise ``ValueError`` in each run where a condition is false."""

    def check(holds: Any, *values: Any) -> None:
        if not np.all(holds):
            raise ValueError(": ".join([message, ", ".join(str(x.numpy()) for x in values)]))

    gradtape.host_call(check, convert_to_tensor(holds), *map(convert_to_tensor, values))
    return values[0] if values else None


def margin(given: Any, x: Any) -> Any:
    """Return a tolerance: by default, ten times the machine epsilon."""
    usual = 10 * np.finfo(x.dtype).eps if x.dtype.kind == "f" else 0.0
    return usual if given is None else given


@adapts("Tensor.ndim")
def assert_rank(x: Any, rank: Any, message: Any = None, name: Any = None) -> None:
    """Raise ``ValueError`` if ``x`` has another number of axes."""
    if convert_to_tensor(x).ndim != int(rank):
        raise ValueError(f"{message or 'assert_rank'}: expected {int(rank)} axes, got {x.shape}")


@adapts("Tensor.ndim")
def assert_rank_at_least(x: Any, rank: Any, message: Any = None, name: Any = None) -> None:
    """Raise ``ValueError`` if ``x`` has fewer axes."""
    if convert_to_tensor(x).ndim < int(rank):
        raise ValueError(f"{message or 'assert_rank_at_least'}: need {rank} axes, got {x.shape}")


@adapts("TensorSpec.admits")
def assert_shapes(
    shapes: Any, data: Any = None, summarize: Any = None, message: Any = None, name: Any = None
) -> None:
    """Raise ``ValueError`` if a shape differs; sizes with the same name must be equal."""
    known: dict[Any, Any] = {}
    for x, wanted in shapes.items() if isinstance(shapes, dict) else shapes:
        x, wanted = convert_to_tensor(x), list(wanted)
        if len(wanted) == x.ndim:
            names = zip(wanted, x.shape)
            wanted = [known.setdefault(n, m) if isinstance(n, str) else n for n, m in names]
        with_checked_shape(x, wanted, message or "assert_shapes")


@adapts("Tensor.dtype")
def assert_type(tensor: Any, tf_type: Any, message: Any = None, name: Any = None) -> None:
    """Raise ``TypeError`` if a tensor has another dtype."""
    found, wanted = convert_to_tensor(tensor).dtype, as_dtype(tf_type)
    if found != wanted:
        raise TypeError(f"{message or 'assert_type'}: dtype {found}, expected {wanted}")


@adapts("Tensor.dtype")
def assert_integer(x: Any, message: Any = None, name: Any = None) -> None:
    """Raise ``TypeError`` unless a tensor has an integer dtype."""
    if convert_to_tensor(x).dtype.kind not in "iu":
        raise TypeError(f"{message or 'assert_integer'}: {x.dtype} is not an integer dtype")


_guards: list[Any] = []


@adapts("debug.nan_guard")
def enable_check_numerics(stack_height_limit: int = 30, path_length_limit: int = 50) -> None:
    """Raise an error from now on when an op returns infinite values or nan."""
    _guards.append(gradtape.debug.nan_guard())
    _guards[-1].__enter__()


@adapts("debug.nan_guard")
def disable_check_numerics() -> None:
    """Undo :func:`enable_check_numerics`."""
    while _guards:
        _guards.pop().__exit__(None, None, None)


# -- tf.data ---------------------------------------------------------------------------------------


AUTOTUNE = -1
INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2
#: Options of how TensorFlow runs a step, and its name.
_IGNORED = (
    "deterministic name num_parallel_calls output_shapes output_types use_unbounded_threadpool"
)
_native = gradtape.data.Dataset


class Options:
    """Options of TensorFlow's engine: any can be set, and all are ignored."""

    def __getattr__(self, name: str) -> Options:
        if name.startswith("__"):
            raise AttributeError(name)
        vars(self)[name] = Options()
        return vars(self)[name]


def _tuned(name: str) -> Callable[..., Any]:
    """Return a method of gradtape's dataset that also takes TensorFlow's options."""
    own = inspect.getattr_static(_native, name)
    method = own.__func__ if isinstance(own, classmethod) else own
    taken = inspect.signature(method).parameters

    @functools.wraps(method)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        given = {k: x for k, x in options.items() if k in taken or k not in _IGNORED.split()}
        if given.get("cycle_length", AUTOTUNE) in (None, AUTOTUNE):
            given.pop("cycle_length", None)
        return method(self, *args, **given)

    return classmethod(call) if isinstance(own, classmethod) else call  # type: ignore[return-value]


@adapts("data.Dataset")
class Dataset(_native):
    """A pipeline; see :class:`gradtape.data.Dataset`. Python integers become int32."""

    for _name in (
        "batch cache concatenate enumerate filter flat_map interleave map padded_batch prefetch "
        "reduce repeat scan shard shuffle skip take take_while unbatch window zip"
    ).split():
        locals()[_name] = _tuned(_name)

    @classmethod
    def from_tensor_slices(cls, tensors: Any, name: Any = None) -> Any:
        """Return a dataset of the rows of arrays."""
        return super().from_tensor_slices(_stacked(tensors))

    @classmethod
    def from_tensors(cls, tensors: Any, name: Any = None) -> Any:
        """Return a dataset of one element."""
        return super().from_tensors(_stacked(tensors))

    @classmethod
    def from_generator(
        cls,
        generator: Any,
        output_types: Any = None,
        output_shapes: Any = None,
        args: Any = None,
        output_signature: Any = None,
        name: Any = None,
    ) -> Any:
        """Return a dataset of what a function yields, in the given dtypes."""
        kinds = output_types if output_signature is None else output_signature

        def typed(*element: Any) -> Any:
            found = element if len(element) > 1 or isinstance(kinds, tuple) else element[0]
            pairs = zip(flatten(found), flatten(kinds))
            cast = [np.asarray(x, as_dtype(getattr(k, "dtype", k))) for x, k in pairs]
            return gradtape.core.extend.pack_like(found, cast)

        found = super().from_generator(generator, *(args or ()))
        return found if kinds is None else found.map(typed)

    @classmethod
    def range(cls, *args: Any, output_type: Any = "int64", name: Any = None) -> Any:
        """Return a dataset of integers, like Python's ``range``."""
        found = super().range(*args)
        dtype = as_dtype(output_type)
        return found if dtype == np.int64 else found.map(lambda x: x.astype(dtype))

    def apply(self, transformation_func: Any, name: Any = None) -> Any:
        """Return a function's result for the dataset."""
        return super().apply(transformation_func)

    def cardinality(self) -> Any:
        """Return the number of elements: -1 if infinite, -2 if unknown."""
        found = super().cardinality()
        number = UNKNOWN_CARDINALITY if found is None else INFINITE_CARDINALITY
        return convert_to_tensor(np.int64(number if found in (None, math.inf) else found))

    def options(self) -> Options:
        """Return options, which are all ignored."""
        return Options()


def _stacked(tensors: Any) -> Any:
    """Convert numbers and lists of them to tensors; leave arrays and lists of arrays."""
    if isinstance(tensors, dict):
        return {key: _stacked(part) for key, part in tensors.items()}
    if isinstance(tensors, tuple):
        return tuple(map(_stacked, tensors))
    arrays = any(hasattr(leaf, "dtype") for leaf in flatten(tensors))
    return tensors if arrays else convert_to_tensor(tensors)


# -- the namespaces --------------------------------------------------------------------------------

#: By namespace, its documentation and its names.
SPACES = {
    "data": (
        "``tf.data``: gradtape's pipelines. TensorFlow's performance options are ignored.",
        "AUTOTUNE INFINITE_CARDINALITY UNKNOWN_CARDINALITY Dataset Options",
    ),
    "strings": (
        "``tf.strings``: text in arrays of bytes, which ops refuse.",
        "as_string each_text format texts",
    ),
    "sparse": (
        "``tf.sparse``: lists of elements, which become dense tensors for computing.",
        "SparseTensor dense from_dense to_dense",
    ),
    "nest": (
        "``tf.nest``: nested containers of lists, tuples and dictionaries.",
        "assert_same_structure map_structure pack_sequence_as",
    ),
    "debugging": (
        "``tf.debugging``: checks that raise an error; in a trace, in each run.",
        (
            "assert_integer assert_rank assert_rank_at_least assert_shapes assert_type "
            "disable_check_numerics enable_check_numerics ensure margin"
        ),
    ),
}
