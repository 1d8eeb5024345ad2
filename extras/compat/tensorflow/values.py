"""Values that are no plain tensors: texts, sparse tensors, nests and pipelines; and checks."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gradtape

from ...core import extend
from ...core.extend import flatten
from .arrays import OF_VERSION_1
from .dtypes import as_dtype, string
from .names import adapts
from .tensors import constant, convert_to_tensor, with_checked_shape

# -- tf.strings ------------------------------------------------------------------------------------


def texts(value: Any) -> Any:
    """Return text as an array of bytes."""
    return np.asarray((value if hasattr(value, "array") else constant(value, string)).array)


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
    return each_text(lambda n: f"{{:{wide}{digits}{kind}}}".format(n).lower().encode(), x)


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


def parts(function: Callable[[str], Any], value: Any) -> Any:
    """Return what a function returns for each text, as ragged rows; for one text, as a tensor."""
    found = texts(value)
    rows = [function(text.decode()) for text in found.reshape(-1)]
    return gradtape.data.RaggedTensor.from_lists(rows, constant) if found.ndim else constant(*rows)


def joined(function: Callable[[Any], str], value: Any) -> Any:
    """Return the text that a function makes of each row of a tensor or a ragged tensor."""
    rows = value if hasattr(value, "numpy") else constant(value)
    if rows.ndim == 1:
        return constant(function(rows.numpy().tolist()))
    return constant([function(row.numpy().tolist()) for row in rows], string)


# -- tf.sparse -------------------------------------------------------------------------------------


@adapts("argwhere")
def from_dense(tensor: Any, name: Any = None) -> Any:
    """Return the nonzero elements as a sparse tensor."""
    x = convert_to_tensor(tensor)
    places = gradtape.argwhere(gradtape.not_equal(x, 0))
    return gradtape.data.SparseTensor(
        places, x[tuple(gradtape.unstack(places, -1))], np.array(x.shape)
    )


def dense(x: Any) -> Any:
    """Return a sparse or dense tensor as a dense one."""
    return x.to_dense() if isinstance(x, gradtape.data.SparseTensor) else convert_to_tensor(x)


def of_sets(how: str, a: Any, b: Any, aminusb: bool = True) -> Any:
    """Combine the rows of two tensors as sets, whose elements are then in order."""
    one, two = (x if hasattr(x, "dense_shape") else _rows_of(x) for x in (a, b))
    one, two = (one, two) if aminusb else (two, one)
    pairs = zip(one.rows(), two.rows(), strict=True)
    return one.from_rows([getattr(x, how)(y) for x, y in pairs], one)


def _rows_of(x: Any) -> Any:
    """Return all elements of a dense tensor, zeros too, as a sparse one."""
    x = convert_to_tensor(x)
    return gradtape.data.SparseTensor(np.argwhere(np.ones(x.shape)), x.reshape(-1), x.shape)


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


def known(holds: bool, error: Any, message: str) -> None:
    """Raise an error with a message unless a condition holds."""
    if not holds:
        raise error(message)


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

    _of_texts = staticmethod(lambda text: constant(text, string))

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

globals().update(OF_VERSION_1)
#: By namespace, its documentation and its names.
SPACES = {
    "compat": ("``tf.compat``: only ``tf.compat.v1``.", ""),
    "compat.v1": ("``tf.compat.v1``: updates of variables.", " ".join(OF_VERSION_1)),
    "data": (
        "``tf.data``: gradtape's pipelines. TensorFlow's performance options are ignored.",
        "AUTOTUNE INFINITE_CARDINALITY UNKNOWN_CARDINALITY Dataset Options",
    ),
    "strings": (
        "``tf.strings``: text in arrays of bytes, which ops refuse.",
        "as_string each_text format joined parts texts",
    ),
    "sparse": (
        "``tf.sparse``: lists of elements, which become dense tensors for computing.",
        "dense from_dense of_sets",
    ),
    "nest": (
        "``tf.nest``: nested containers of lists, tuples and dictionaries.",
        "assert_same_structure map_structure pack_sequence_as",
    ),
    "debugging": (
        "``tf.debugging``: checks that raise an error; in a trace, in each run.",
        ("assert_shapes disable_check_numerics enable_check_numerics ensure known margin"),
    ),
}
