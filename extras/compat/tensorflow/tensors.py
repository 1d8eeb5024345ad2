"""TensorFlow's tensors, variables and shapes: Python integers become int32."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ContextDecorator
from contextvars import ContextVar
from functools import partialmethod
from operator import attrgetter
from typing import Any

import numpy as np

import gradtape

from ...core.errors import TraceError
from ...core.extend import (
    Size,
    Symbol,
    Tensor,
    ValueHolder,
    as_shape,
    as_size,
    flatten,
    is_users_call,
    known_size,
    largest,
    lifted,
    not_known,
    same_size,
    sizes_differ,
    smallest,
)
from ...core.extend import Variable as NativeVariable
from ...core.extend import with_checked_shape as held_in_runs
from ...layers.base.weights import constraint_of
from .dtypes import CLASSES, OwnShape, TensorShape, as_dtype, cast, int32, int64, string
from .names import adapts

__all__ = "TensorShape Variable constant convert_to_tensor get_static_value is_tensor".split()

_INT32 = np.iinfo(np.int32)
_ARRAY, _SEQUENCES = np.ndarray, frozenset({list, tuple})


# -- tensors ---------------------------------------------------------------------------------------


@adapts("constant")
def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Any:
    """Return a tensor; see :func:`gradtape.constant`."""
    if dtype is None and type(value) is not float:
        numbers = type(value) is _ARRAY and type(value.dtype) in CLASSES
        dtype = None if numbers else _usual_dtype(value)
    if dtype is not None:
        refuse_loss(value, as_dtype(dtype))
    if dtype is not None and as_dtype(dtype) == string:
        encoded = np.vectorize(_encoded, otypes=[object])(np.array(value, object))
        return Tensor(np.asarray(encoded, object))
    if shape is None:
        return gradtape.as_tensor(value, dtype)
    return gradtape.constant(value, dtype, sizes(shape, "constant"))


@adapts("as_tensor")
def convert_to_tensor(
    value: Any, dtype: Any = None, dtype_hint: Any = None, name: str | None = None
) -> Any:
    """Return ``value`` as a tensor, unchanged if it is one; see :func:`constant`."""
    if dtype is None:
        if type(value) is Tensor and type(value.array) is _ARRAY:
            return value
        if type(value) is _ARRAY and value.dtype.kind not in "OSU":
            return gradtape.as_tensor(value)
    if isinstance(value, ValueHolder):
        value = value.value  # as_tensor would return one tensor for all reads under a tape
    if dtype is None and dtype_hint is not None and not isinstance(value, Tensor):
        try:
            return constant(value, dtype_hint)
        except (TypeError, ValueError, OverflowError):
            pass  # it is only a hint
    if dtype is None and isinstance(value, (Tensor, np.number, np.bool_)):
        return gradtape.as_tensor(value)
    return constant(value, dtype)


@adapts("Tensor", "Variable")
def is_tensor(x: Any) -> bool:
    """Return whether ``x`` is a tensor or a variable."""
    return isinstance(x, (Tensor, ValueHolder))


@adapts("Tensor.numpy")
def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """Return the value as a NumPy array, or None if it is unknown in a trace."""
    tensor = convert_to_tensor(tensor)
    if isinstance(tensor.array, Symbol):
        known = tensor.array.integers  # known if they come from a shape
        if known is None or not all(map(known_size, known.flat)):
            return None
        return known.astype(tensor.dtype)
    try:
        return np.asarray(tensor.numpy())
    except TypeError:
        return None


def _usual_dtype(value: Any) -> Any:
    """Return the dtype of a value where TensorFlow's differs from gradtape's, otherwise None."""
    first = value
    while type(first) in _SEQUENCES and first:
        first = first[0]
    if type(first) is float:
        return None
    if _is_made_of_integers(value):
        return _integer_dtype(value)
    return string if _is_text(value) else None


def _is_text(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return len(value) > 0 and all(_is_text(item) for item in value)
    kind = getattr(getattr(value, "dtype", None), "kind", "-")
    return isinstance(value, (str, bytes)) or kind in "USO"


def _encoded(value: Any) -> bytes:
    if not isinstance(value, (str, bytes)):
        raise TypeError(f"a text is str or bytes, got {value!r}; read numbers with astype(float)")
    return value.encode() if isinstance(value, str) else bytes(value)


def _is_made_of_integers(value: Any) -> bool:
    if isinstance(value, (list, tuple, range)):
        return len(value) > 0 and all(map(_is_made_of_integers, value))
    return type(value) is int or isinstance(value, Size)


def _integer_dtype(value: Any) -> np.dtype[Any]:
    array = np.asarray([n for n in flatten(value) if known_size(n)] or [0])
    if array.dtype == object or array.size == 0:
        return int64
    return int32 if _INT32.min <= array.min() and array.max() <= _INT32.max else int64


#: Each kind of numbers loses something in a kind with a lower rank.
_RANKS = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
_KINDS: dict[type, str] = {int: "i", float: "f", complex: "c"}


def refuse_loss(value: Any, dtype: np.dtype[Any]) -> None:
    """Raise ``TypeError`` if numbers are of a wider kind than ``dtype``, like 1.5 for int32."""
    kinds = "b"
    if hasattr(value, "dtype"):
        kinds = as_dtype(value.dtype).kind
    elif type(value) in _KINDS:
        kinds = _KINDS[type(value)]
    elif dtype.kind in "biu" and type(value) in _SEQUENCES:
        kinds += "".join(_KINDS.get(kind, "b") for kind in set(map(type, flatten(value))))
    if max(_RANKS.get(kind, 0) for kind in kinds) > _RANKS.get(dtype.kind, 3):
        raise TypeError(
            f"{value!r:.80} does not fit dtype {dtype}, which would drop a part of it: convert it "
            "with tf.cast, or pass another dtype"
        )


def together(x: Any, y: Any) -> tuple[Any, Any]:
    """Return two operands; Python numbers without a tensor next to them get TensorFlow's dtypes."""
    if hasattr(x, "dtype") or hasattr(y, "dtype"):
        return x, y
    first, second = alike([x, y])
    return first, second


def alike(values: Sequence[Any]) -> list[Any]:
    """Return Python numbers as tensors: of floats, if any of them are floats."""
    made = [convert_to_tensor(value) for value in values]
    floats = [x.dtype for x in made if x.dtype.kind == "f"]
    return [cast(x, floats[0]) if floats and x.dtype.kind in "iu" else x for x in made]


# -- arguments -------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """Return a tensor of integers (a shape, an axis, sizes) as Python integers or lists.

    Values that are unknown in a trace become unknown sizes.
    """
    if type(value) is int:
        return value
    if isinstance(value, Tensor) and type(value.array) is Symbol:
        if value.shape == ():
            return as_size(value, "size")
        value = list(gradtape.unstack(value))
    if isinstance(value, (list, tuple)):
        return [x if type(x) is int else plain(x) for x in value]
    if isinstance(value, (Tensor, NativeVariable, np.ndarray, np.generic)):
        return np.asarray(value).tolist()
    return value


#: A shape, a tensor, or a sequence of sizes or tensors, as a tuple.
sizes = as_shape


def with_checked_shape(x: Any, shape: Sequence[Any], op: str) -> Any:
    """Return ``x`` with a shape that it must have; each run checks what a trace cannot."""
    if x.shape is None and op == "set_shape":
        return held_in_runs(x, tuple(shape))
    if x.shape is None:
        raise TraceError(
            f"{op}: the rank of {x!r} is unknown in this trace: give its TensorSpec a shape"
        )
    wanted = tuple(n if want is None else want for want, n in zip(shape, x.shape, strict=False))
    differs = [sizes_differ(want, n) for want, n in zip(wanted, x.shape, strict=False)]
    if len(shape) != len(x.shape) or any(differs):
        raise ValueError(f"{op}: expected shape {tuple(shape)}, got {x.shape}")
    return held_in_runs(x, wanted)


def broadcast_size(a: Any, b: Any) -> Any:
    """Return the size to which two sizes broadcast, or None if they do not."""
    if same_size(a, b) or same_size(b, 1):
        return a
    if known_size(a):
        return b if a == 1 else None if known_size(b) else a
    if known_size(b):
        return b
    # the size that is not 1; if both are not 1 and differ, using the shape raises
    return largest(a, b) * smallest(a, b, 1)


def axes(axis: Any) -> Any:
    """Return an axis argument (integers, in a sequence or a tensor) as gradtape takes it."""
    if axis is None or type(axis) is int:
        return axis
    if type(axis) in _SEQUENCES:
        for n in axis:
            if type(n) is not int:
                break
        else:
            return tuple(axis)
    axis = plain(axis)
    return tuple(as_size(n, "axis") for n in axis) if isinstance(axis, list) else axis


# -- variables -------------------------------------------------------------------------------------

_scope: ContextVar[str] = ContextVar("gradtape_name_scope", default="")


class scope(ContextDecorator):
    """Prefixes the names of variables made in a block with ``name/``.

    Attributes
    ----------
    name
        The prefix, including those of enclosing blocks.
    """

    def __init__(self, name: str) -> None:
        self._given = name
        self.name = f"{_scope.get()}{name}/" if name else ""
        self._tokens: list[Any] = []

    def __enter__(self) -> str:
        self._tokens.append(_scope.set(f"{_scope.get()}{self._given}/" if self._given else ""))
        return _scope.get()

    def __exit__(self, *error: object) -> None:
        _scope.reset(self._tokens.pop())


class InstanceMeta(type):
    """Makes instances of a native class count as instances of its adapter.

    ``isinstance(v, tf.Variable)`` then holds for the variables of any layer.
    """

    def __instancecheck__(cls, instance: Any) -> bool:
        stands_for = cls.__dict__.get("stands_for")
        if stands_for is not None:
            return isinstance(instance, stands_for)
        return super().__instancecheck__(instance)


class VariablePart(ValueHolder):
    """A variable's value, which can also be called, or a part of it, which can be assigned."""

    __slots__ = ("_index", "_of", "_tensor")

    def __init__(self, tensor: Any, of: Any = None, index: Any = None) -> None:
        self._tensor, self._of, self._index = tensor, of, index

    def __call__(self) -> Any:
        return self._tensor

    def _read(self) -> Any:
        return self._tensor

    handle = _read
    value = property(_read)
    array, device, dtype, ndim, shape, size = (
        property(attrgetter(f"_tensor.{name}"))
        for name in ("array", "device", "dtype", "ndim", "shape", "size")
    )

    def _assigned(self, method: str, value: Any) -> Any:
        return self._of.assign(getattr(self._of.read_value().at[self._index], method)(value))

    assign = partialmethod(_assigned, "set")
    assign_add, assign_sub = partialmethod(_assigned, "add"), partialmethod(_assigned, "subtract")

    def __repr__(self) -> str:
        return repr(self._tensor)

    def __str__(self) -> str:
        return str(self._tensor)


@adapts("Variable")
class Variable(NativeVariable, metaclass=InstanceMeta):
    """A :class:`gradtape.Variable` made with TensorFlow's arguments."""

    __slots__ = ()
    stands_for = NativeVariable

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        import_scope: Any = None,
        constraint: Any = None,
        synchronization: Any = None,
        aggregation: Any = None,
        shape: Any = None,
    ) -> None:
        if initial_value is None:
            raise ValueError(
                "Variable: initial_value is missing: pass a value, or a function that returns it"
            )
        if constraint is not None:
            raise ValueError(
                "Variable: constraint is not supported: project the value after each step"
            )
        if isinstance(shape, (list, tuple)) and None in shape:
            raise ValueError(
                f"Variable: shape={shape} has unknown sizes, but a variable's shape is fixed: "
                "leave shape out, and make a new variable for another shape"
            )
        if callable(initial_value):
            with gradtape.init_scope():
                initial_value = initial_value()
        value = constant(initial_value, dtype)
        super().__init__(
            gradtape.Tensor(lifted(value.array)) if type(value.array) is Symbol else value,
            trainable is None or trainable,
            _scope.get() + ("Variable" if name is None else name),
        )
        if shape is not None:
            wanted = gradtape.TensorSpec(shape, self.dtype)
            if not wanted.admits(self.shape):
                raise ValueError(f"Variable: shape={shape}, but the value has shape {self.shape}")

    @property
    def value(self) -> Any:
        """The current value; ``value()`` returns it too, as in TensorFlow."""
        read = super().value
        return VariablePart(read) if is_users_call() else read

    def read_value(self) -> Any:
        """Return the current value."""
        return super().value

    def __getitem__(self, index: Any) -> Any:
        found = super().value[index]
        return VariablePart(found, self, index) if is_users_call() else found

    def __iter__(self) -> Iterator[Any]:
        return iter(super().value)

    # ``read_value=False`` saves a read in TensorFlow; returning a variable costs nothing here
    def assign(
        self, value: Any, use_locking: bool = False, name: Any = None, read_value: bool = True
    ) -> Any:
        """Replace the value; see :meth:`gradtape.Variable.assign`. The options are ignored."""
        return super().assign(value)

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: Any = None, read_value: bool = True
    ) -> Any:
        """Add to the value. The options are ignored."""
        return super().assign_add(delta)

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: Any = None, read_value: bool = True
    ) -> Any:
        """Subtract from the value. The options are ignored."""
        return super().assign_sub(delta)


# -- more attributes of tensors and variables ------------------------------------------------------


class Reference:
    """Refers to a tensor or a variable in sets and dictionaries, by identity."""

    def __init__(self, of: Any) -> None:
        self._of = of

    def deref(self) -> Any:
        """Return the tensor or variable."""
        return self._of

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self._of is other._of

    def __hash__(self) -> int:
        return id(self._of)


def _shape(self: Any, new: Any = tuple.__new__, kind: type = OwnShape) -> Any:
    """The shape, with TensorFlow's methods."""
    held = self.array.shape
    if held is not None:
        return new(kind, held)
    if is_users_call():  # None == None would say that two shapes are equal
        raise not_known(self.array, "shape (its rank is unknown: give its TensorSpec a rank)")
    return None


def _set_shape(self: Any, shape: Any) -> None:
    """Add what you know about the shape; each run of a trace checks it."""
    self.array = with_checked_shape(self, TensorShape(shape), "set_shape").array


# native functions make tensors and variables too
for _kind in (Tensor, NativeVariable):
    for _name, _value in {
        "get_shape": lambda self: self.shape,
        "ref": lambda self: Reference(self),
        "set_shape": _set_shape,
        "shape": property(_shape),
    }.items():
        setattr(_kind, _name, _value)
setattr(NativeVariable, "constraint", property(constraint_of))  # noqa: B010
