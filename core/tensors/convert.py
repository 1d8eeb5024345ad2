"""Conversion of numbers, lists, arrays and variables to tensors."""

from __future__ import annotations

import sys
from collections import UserList, deque
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.context import active_tapes
from ..base.dtypes import (
    DTYPES,
    SCALARS,
    as_dtype,
    default_complex_dtype,
    default_dtype,
    numpy_dtype,
    wider_dtype,
)
from ..base.sizes import (
    Condition,
    Number,
    Open,
    OpenSize,
    Size,
    as_shape,
    as_symbol,
    is_open,
    known_size,
    sizes_differ,
)
from ..base.table import above, ops
from ..base.tree import flatten, map_structure
from ..ops.dispatch import (
    backend_for_type,
    check_alive,
    current_backend,
    current_device,
    is_transformed,
    placed,
    selects,
    transforms,
)
from ..ops.promotion import cast_integers
from .data_frames import NotNumbers as NotNumbers
from .data_frames import (
    held_tensor,
    holds_tensors,
    may_hold_tensors,
    numbers_of,
    read_array,
    why_no_numbers,
)
from .tensor import Operators, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from ..ops.backend import Backend
    from ..ops.primitive import Primitive

# Python's number types, the narrowest first, and their positions, also of the types that are one of
# them in each run of a trace.
_NUMBERS = (bool, int, float, complex)
_PLACES: dict[type, int] = {
    **{kind: place for place, kind in enumerate(_NUMBERS)},
    Condition: 0,
    Size: 1,
    Number: 2,
}
# Types of values without tensors, for the quickest test.
_WITHOUT_TENSORS = SCALARS | {np.ndarray}


def constant(value: Any, dtype: Any = None, shape: Any = None) -> Tensor:
    """Create a tensor on the current backend.

    Parameters
    ----------
    value
        A number, nested lists of numbers, an array, or a tensor. The value is copied.
    dtype
        The dtype. If not given, arrays keep theirs, Python floats become the default dtype
        (``float32``) and Python integers ``int64``.
    shape
        If given, the result has this shape; a single number fills it.

    Returns
    -------
    Tensor
        A tensor that no tape watches yet.

    Raises
    ------
    TypeError
        If the value is not numeric, or a masked array, whose mask would be lost.
    ValueError
        If nested lists are ragged, or the value does not fit ``shape``.

    Examples
    --------
    >>> gt.constant([1.0, 2.0])
    <Tensor shape=(2,) dtype=float32 value=[1., 2.]>
    >>> gt.constant(7, shape=(2, 2)).tolist()
    [[7, 7], [7, 7]]
    """
    result = as_tensor(value, dtype)
    if shape is None:
        return result
    shape = as_shape(shape, "constant")
    if known_size(result.size) and result.size == 1:
        filled: Tensor = ops["broadcast_to"](ops["reshape"](result, shape=()), shape=shape)
        return filled
    if sizes_differ(result.size, prod(shape)):
        raise ValueError(
            f"constant: a value of shape {result.shape} does not fill the shape {shape}"
        )
    return result.reshape(shape)


def as_tensor(value: Any, dtype: Any = None) -> Tensor:
    """Return ``value`` as a tensor; a tensor is returned unchanged.

    An array is copied, because a tensor never changes and an array may.

    Parameters
    ----------
    value
        Anything that :func:`gradtape.constant` takes, or a variable, whose value is read. Repeated
        reads under one tape share one tensor, whereas ``variable.value`` is a new one each time.
    dtype
        The dtype, if not the value's own; a tensor is cast to it.

    Returns
    -------
    Tensor
        The tensor. If ``value`` is a tensor or a variable, gradients reach it.

    Raises
    ------
    TypeError
        If the value is not numeric, or a masked array.
    ValueError
        If nested lists are ragged.

    Examples
    --------
    >>> x = gt.constant([1.0, 2.0])
    >>> gt.as_tensor(x) is x
    True
    >>> gt.as_tensor([1, 2], dtype="float32").tolist()
    [1.0, 2.0]
    """
    if isinstance(value, Operators):
        tensor = value._read()
        if type(tensor.array) in transforms:  # checked inline, since many ops call this
            check_alive(tensor.array)
        return tensor if dtype is None else tensor.astype(as_dtype(dtype))
    if is_open(value):
        return Tensor(as_symbol(value, (), None if dtype is None else as_dtype(dtype)))
    if is_transformed(value):  # in a rule that calls public functions
        tensor = Tensor(check_alive(value))
        return tensor if dtype is None else tensor.astype(as_dtype(dtype))
    if type(value) not in _WITHOUT_TENSORS:
        if isinstance(value, (deque, UserList)):
            value = list(value)
        listed = isinstance(value, (list, tuple))
        kinds = set(map(type, flatten(value))) if listed else {type(value)}
        if any(issubclass(kind, (Operators, Open)) for kind in kinds):
            return _stacked(value, dtype, kinds)
        if any(map(may_hold_tensors, kinds)):
            held = map_structure(held_tensor, value)
            if any(isinstance(leaf, Operators) for leaf in flatten(held)):
                return as_tensor(held, dtype)
    try:
        tensor = Tensor(_array(value, dtype))
    except NotNumbers:
        if not holds_tensors(value):
            raise
        return as_tensor(np.asarray(value).tolist(), dtype)
    for tape in active_tapes.get():
        if tape.checks_constants:
            tape.record_entry(tensor, value)
    return tensor


def _stacked(values: Sequence[Any], dtype: Any, kinds: set[type]) -> Tensor:
    """Return a list of tensors and numbers, whose leaves are of ``kinds``, as one tensor."""
    if dtype is None and (widest := _widest(kinds)) is not None:
        dtype = {float: default_dtype(), complex: default_complex_dtype()}.get(widest, widest)
    items = as_operands(values) if dtype is None else [as_tensor(item, dtype) for item in values]
    stacked: Tensor = ops["stack"](*items, axis=0)
    return stacked


def floats(*values: Any) -> list[Tensor]:
    """Return values as floating or complex tensors, for functions that are not for integers.

    Integers and booleans take the dtype of the others, or the default dtype if there are no others:
    the rule of ops that are declared ``floating``.
    """
    tensors = with_each_other(values)
    for x in tensors:
        if getattr(x.array.dtype, "kind", "b") in "biu":
            return cast_integers(tensors, range(len(tensors)), ops["cast"])
    return tensors


def with_others(
    value: Any, others: Sequence[Any], convert: Callable[[Any], Tensor] = as_tensor
) -> Tensor:
    """Return ``convert(value)``, with Python's numbers on the backend of the tensors in ``others``.

    Numbers, and lists of numbers, have no place of their own. NumPy's arrays have one: they are
    tensors of the current backend, and are not moved.
    """
    if type(value) is Tensor or not _may_be_numbers(value):
        return convert(value)
    return _placed(value, _place_of(others), convert)


def with_each_other(values: Sequence[Any]) -> list[Tensor]:
    """Return values as tensors, Python's numbers on the backend of the tensors among them."""
    place = _place_of(values) if any(map(_may_be_numbers, values)) else None
    return [_placed(value, place, as_tensor) for value in values]


def _may_be_numbers(value: Any) -> bool:
    return type(value) in _PLACES or isinstance(value, (list, tuple))


def _placed(
    value: Any, place: tuple[Backend, str] | None, convert: Callable[[Any], Tensor]
) -> Tensor:
    """Return ``convert(value)``, with Python's numbers at a place; None is the current one."""
    if place is None or not _may_be_numbers(value):
        return convert(value)
    if any(isinstance(x, (np.ndarray, np.generic)) for x in flatten(value)):
        return convert(value)
    with placed(*place):
        return convert(value)


def device_of_tensors(values: Any) -> AbstractContextManager[Any] | None:
    """Return a context in which new tensors are made where the tensors among some values are.

    It is None if they are on the current backend or on several ones, and if there are NumPy arrays
    among the values, which have a place of their own.
    """
    leaves = flatten(values)
    place = _place_of(leaves)
    if place is None or any(isinstance(x, (np.ndarray, np.generic)) for x in leaves):
        return None
    others = (_owner_of(x) for x in leaves)
    if any(owner is not None and owner is not place[0] for owner in others):
        return None
    return placed(*place)


def _place_of(values: Sequence[Any]) -> tuple[Backend, str] | None:
    """Return where the first tensor is; None if it is on the current backend, or there is none."""
    lists = []
    for value in values:
        if isinstance(value, Operators):
            array = value.array  # type: ignore[attr-defined]
            if type(array) is np.ndarray and not selects():
                return None  # the usual case
            array = of_backend(array)
        elif isinstance(value, (list, tuple)):
            lists.append(value)
            continue
        else:
            array = value
        owner = _owner_of(value)
        if owner is not None:
            return None if owner is current_backend() else (owner, owner.device(array))
    inside = [leaf for value in lists for leaf in flatten(value) if type(leaf) not in _PLACES]
    return _place_of(inside) if inside else None


def _owner_of(value: Any) -> Backend | None:
    """Return the backend of a tensor or of another library's array; None for all else."""
    if isinstance(value, Operators):
        kind = type(of_backend(value.array))  # type: ignore[attr-defined]
        return None if kind in transforms else backend_for_type(kind)
    kind = type(value)
    if kind in _PLACES or kind in transforms or isinstance(value, (np.ndarray, np.generic)):
        return None
    return backend_for_type(kind) if is_device_array(value) else None


def of_backend(array: Any) -> Any:
    """Return the array that a batch holds; other arrays, also those of traces, unchanged."""
    while getattr(array, "batched", False):
        array = array.array
    return array


def _array(value: Any, dtype: Any) -> Any:
    """Return a new array of the backend that owns ``value``, or of the current one."""
    owner = current_backend()
    if not isinstance(value, (np.ndarray, np.generic)) and is_device_array(value):
        owner = backend_for_type(type(value))
        if dtype is None and wider_dtype(numpy_dtype(value.dtype)) is not None:
            raise NotNumbers(why_no_numbers(value, np.empty(0, value.dtype)))
    else:
        value = host_array(value, dtype)
    wanted = None if dtype is None else as_dtype(dtype)
    return owner.asarray(value, dtype=wanted, device=current_device())


def own_array(array: np.ndarray[Any, Any]) -> Any:
    """Return a NumPy array with no other holder as an array of the current backend.

    On the host it is not copied. It must have one of NumPy's own dtype objects.
    """
    owner = current_backend()
    host = backend_for_type(type(array)) is owner
    return array if host else owner.asarray(array, device=current_device())


def as_operands(values: Sequence[Any]) -> list[Tensor]:
    """Return the arguments of one function as tensors, Python's numbers in the others' dtype.

    A list of Python numbers is weak, as a single number is: ``float64`` with ``float64`` tensors,
    without rounding, and ``float32`` with ``float32`` tensors. Integers with integers are ``int64``
    as in NumPy.
    """
    if set(map(type, values)) == {Tensor}:
        return list(values)
    dtypes = _dtypes(flatten(list(values)))
    place = _place_of(values)
    return [_placed(value, place, lambda x: _as_weak(x, dtypes)) for value in values]


def as_stored_value(value: Any, like: Operators, place: str) -> Tensor:
    """Return a value to store in ``like`` as a tensor; Python numbers get its dtype and backend."""
    if type(value) is Tensor:
        return value
    dtype = like.dtype  # type: ignore[attr-defined]
    weak = _weak_dtype(value, [dtype])
    if weak is not None and weak.kind != "c":
        check_fits_dtype(value, dtype, place)
    wanted = dtype if weak == dtype else None
    try:
        return with_others(value, (like,), lambda x: as_tensor(x, wanted))
    except NotNumbers as error:
        name = getattr(like, "name", None)
        of = f" to variable {name!r}" if name else ""
        raise NotNumbers(f"{place}{of}: {error}") from error


def check_cast(value: Tensor, dtype: np.dtype[Any], place: str) -> None:
    """Raise, naming ``place``, if a cast of known integers to ``dtype`` would wrap them."""
    if value.dtype.kind in "iu" and dtype.kind in "iu" and not np.can_cast(value.dtype, dtype):
        if is_transformed(value.array):
            return
        try:
            _check_fits_dtype(value.numpy(), dtype)
        except OverflowError as error:
            raise OverflowError(f"{place}: {error}") from None


def _as_weak(value: Any, dtypes: Sequence[np.dtype[Any]]) -> Tensor:
    """Return ``value`` as a tensor; Python numbers take a floating dtype from ``dtypes``."""
    if is_open(value):
        symbol = as_symbol(value, dtypes)
        return Tensor(symbol) if symbol.dtype.kind in "fc" else as_tensor(value)
    dtype = _weak_dtype(value, dtypes)
    weak = dtype is not None and dtype.kind in "fc"
    return _cast_weakly(value, dtype) if weak else as_tensor(value)


def _cast_weakly(value: Any, dtype: Any) -> Tensor:
    """Return Python numbers as a tensor of ``dtype``, even if they do not fit."""
    try:
        return as_tensor(read_array(value, dtype))
    except OpenSize:
        return as_tensor(value, dtype)


def _dtypes(values: Sequence[Any]) -> list[np.dtype[Any]]:
    found = [getattr(value, "dtype", None) for value in values]
    return [dtype for dtype in found if isinstance(dtype, np.dtype) and dtype.kind in "biufc"]


def _weak_dtype(value: Any, dtypes: Sequence[np.dtype[Any]]) -> np.dtype[Any] | None:
    """Return the dtype of Python numbers combined with ``dtypes``; None for typed values."""
    if not dtypes or not (type(value) in _PLACES or isinstance(value, (list, tuple))):
        return None
    widest = _widest(set(map(type, flatten(value))))
    return None if widest in (None, bool) else np.result_type(*dtypes, widest())


def _widest(kinds: set[type]) -> Any:
    """Return the widest of Python's number types among ``kinds``; None if there are others."""
    if not kinds <= _PLACES.keys():
        return None
    return _NUMBERS[max(map(_PLACES.__getitem__, kinds), default=2)]  # an empty list is float


def on_device_of(value: Any, tensor: Tensor, weak: bool = True) -> Tensor:
    """Return a number, a list or a host array as a tensor on the device of ``tensor``.

    Values that a function creates have no backend of their own, so they follow the user's tensor.
    Python numbers take its floating dtype, unless ``weak`` is false, as for indices.
    """
    made = _as_weak(value, [tensor.dtype]) if weak else as_tensor(value)
    like = of_backend(tensor.array)
    if isinstance(value, Operators) or is_transformed(like):
        return made
    if is_transformed(made.array) or type(made.array) is type(like):
        return made
    owner = backend_for_type(type(like))
    host = backend_for_type(type(made.array)).to_numpy(made.array)
    return Tensor(owner.asarray(host, device=owner.device(like)))


def operand(value: Any, op: Primitive, position: int, inputs: Sequence[Any]) -> Tensor:
    """Return one of an op's inputs as a tensor; errors name the op and the argument."""
    try:
        if value is None:
            raise NotNumbers("expected a tensor or a number, got None")
        dtype = None
        if is_open(value):
            return Tensor(as_symbol(value, _dtypes(inputs)))
        if isinstance(value, (list, tuple)):
            dtype = _weak_dtype(value, _dtypes(inputs))
            # an input without a gradient, among others that have one, is an index or a condition
            if op.rules is not None and op.rules[position] is None and op.differentiable:
                dtype = None
        return with_others(
            value,
            inputs,
            as_tensor if dtype is None else lambda x: _cast_weakly(x, dtype),
        )
    except (TypeError, ValueError, OverflowError) as error:
        if op.variadic or position >= len(op.inputs):
            argument = f"argument {position}"
        else:
            argument = f"argument {op.inputs[position]!r}"
        raise type(error)(f"{op.name}: {argument}: {error}") from error


def host_array(value: Any, dtype: Any = None) -> np.ndarray[Any, Any]:
    """Return a NumPy array of ``value``, Python floats in the default dtype."""
    if isinstance(value, (np.ndarray, np.generic, list, tuple)) and type(value) is not np.ndarray:
        check_unmasked(value)
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
    else:
        array = read_array(value)
        if dtype is not None:
            _check_fits_dtype(array, as_dtype(dtype))
        elif array.dtype.kind in "fc" and made_of_python_numbers(value):
            small = default_dtype() if array.dtype.kind == "f" else default_complex_dtype()
            array = array.astype(small)
    if type(array.dtype) not in DTYPES:
        array = numbers_of(value, array, None if dtype is None else as_dtype(dtype))
    return _native(array)


def check_unmasked(value: Any) -> None:
    """Raise for a masked array, also inside lists: its mask would be lost silently."""
    masked = sys.modules.get("numpy.ma")  # without it, there is none; NumPy imports it late
    if masked is not None and isinstance(value, masked.MaskedArray):
        raise TypeError(
            "a tensor has no mask, so a masked array's hidden values would become data; pass "
            "x.filled(value), or x.data and x.mask as two arrays"
        )
    if isinstance(value, (list, tuple)):
        kinds = set(map(type, value))
        if not kinds <= SCALARS:
            for item in value:
                check_unmasked(item)


def check_fits_dtype(value: Any, dtype: np.dtype[Any], place: str) -> None:
    """Raise, naming ``place``, if ``value`` holds Python numbers that do not fit a dtype."""
    if _weak_dtype(value, [dtype]) is not None:
        try:
            _check_fits_dtype(read_array(value), dtype)
        except OpenSize:
            return  # known only in a run
        except (OverflowError, TypeError) as error:
            raise type(error)(f"{place}: {error}") from None


def _check_fits_dtype(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> None:
    """Raise, as NumPy does, if numbers do not fit a dtype: a cast would wrap them."""
    if array.dtype.kind == "c" and dtype.kind in "iuf":
        raise TypeError(f"a complex number cannot become {dtype}; take its real part, or its abs()")
    if dtype.kind in "iu" and array.dtype.kind in "iuf" and array.size:
        info, low, high = np.iinfo(dtype), np.trunc(array.min()), np.trunc(array.max())
        if not (low >= info.min and high < info.max + 1):  # also true for nan
            wrong = low if low < info.min else high
            raise OverflowError(
                f"{wrong} does not fit {dtype}, whose range is {info.min} to {info.max}"
            )


def _native(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return ``array`` with NumPy's own dtype object: native byte order, and fast to compare."""
    plain = np.dtype(array.dtype.type)
    return array if array.dtype is plain else array.astype(plain)


def made_of_python_numbers(value: Any) -> bool:
    """Return whether a list, however nested, has no other elements than Python's numbers."""
    return all(
        type(leaf) in SCALARS
        for leaf in flatten(value if isinstance(value, (list, tuple)) else [value])
    )


def is_device_array(value: Any) -> bool:
    """Return whether a backend owns arrays of this type."""
    try:
        backend_for_type(type(value))
    except TypeError:
        return False
    return True


above.as_tensor = as_tensor
