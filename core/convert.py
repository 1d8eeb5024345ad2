"""Turning what users have (numbers, lists, arrays, variables) into tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .backend import backend_for_type, current_backend, current_device
from .dtypes import as_dtype, default_complex_dtype, default_dtype
from .tensor import Tensor
from .tree import flatten

if TYPE_CHECKING:
    from .op import Op

__all__ = ["as_tensor", "beside", "constant", "operand"]


def constant(value: Any, dtype: Any = None, shape: Any = None) -> Tensor:
    """Make a tensor on the current backend.

    Parameters
    ----------
    value
        A number, nested lists of numbers, an array, or a tensor. The value is copied.
    dtype
        The dtype. If not given, arrays keep theirs, Python floats become the default dtype
        (``float32``) and Python integers ``int64``.
    shape
        If given, the result has this shape; a single number fills it.

    Raises
    ------
    TypeError
        If the value is not numeric.
    ValueError
        If nested lists are ragged, or the value does not fit ``shape``.

    Examples
    --------
    >>> gt.constant([1.0, 2.0])
    <Tensor shape=(2,) dtype=float32 value=[1., 2.]>
    """
    from .variable import Variable

    if isinstance(value, Variable):
        value = value.value
    if isinstance(value, Tensor):
        result = value if dtype is None else value.astype(as_dtype(dtype))
    elif _has_tensors(value):
        from .table import ops

        result = ops["stack"](*[as_tensor(item, dtype) for item in value], axis=0)
    else:
        owner = current_backend()
        if not isinstance(value, (np.ndarray, np.generic)) and _is_device_array(value):
            owner = backend_for_type(type(value))
        else:
            value = host_array(value, dtype)
        wanted = None if dtype is None else as_dtype(dtype)
        result = Tensor(owner.asarray(value, dtype=wanted, device=current_device()))
    if shape is None:
        return result
    shape = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if result.size == 1:
        from .table import ops

        filled: Tensor = ops["broadcast_to"](ops["reshape"](result, shape=()), shape=shape)
        return filled
    if result.size != int(np.prod(shape)):
        raise ValueError(
            f"constant: a value of shape {result.shape} does not fill the shape {shape}"
        )
    return result.reshape(shape)


def as_tensor(value: Any, dtype: Any = None) -> Tensor:
    """Return ``value`` as a tensor, itself if it is one.

    An array is copied: a tensor never changes, and the array's owner may.
    """
    if type(value) is Tensor and dtype is None:
        return value
    from .variable import Variable

    if isinstance(value, Variable):
        return as_tensor(value.value, dtype)
    if isinstance(value, (np.ndarray, np.generic)) and dtype is None:
        if value.dtype.kind not in "biufc":
            as_dtype(value.dtype)
        if current_backend().name == "numpy":
            return Tensor(_native(np.array(value)))
    return constant(value, dtype)


def beside(value: Any, tensor: Tensor) -> Tensor:
    """Return ``value`` as a tensor where ``tensor`` is, if it is a number, a list or on the host.

    What a function makes itself has no backend of its own: it goes where the user's tensor is.
    """
    from .op import is_transformed
    from .variable import Variable

    made = as_tensor(value)
    if isinstance(value, (Tensor, Variable)) or is_transformed(tensor.array):
        return made
    if is_transformed(made.array) or type(made.array) is type(tensor.array):
        return made
    owner = backend_for_type(type(tensor.array))
    host = backend_for_type(type(made.array)).to_numpy(made.array)
    return Tensor(owner.asarray(host, device=owner.device(tensor.array)))


def operand(value: Any, op: Op, position: int) -> Tensor:
    """Return an op's input as a tensor; name op and argument if it is none."""
    try:
        if value is None:
            raise TypeError("expected a tensor or a number, got None")
        return as_tensor(value)
    except (TypeError, ValueError) as error:
        if op.variadic or position >= len(op.inputs):
            argument = f"argument {position}"
        else:
            argument = f"argument {op.inputs[position]!r}"
        raise type(error)(f"{op.name}: {argument}: {error}") from error


def host_array(value: Any, dtype: Any = None) -> np.ndarray[Any, Any]:
    """Return a NumPy array of ``value``, Python floats in the default dtype."""
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
    else:
        try:
            array = np.asarray(value)
        except ValueError as error:
            raise ValueError(f"nested lists must be rectangular: {error}") from error
        if dtype is None and array.dtype.kind in "fc" and _made_of_python_numbers(value):
            small = default_dtype() if array.dtype.kind == "f" else default_complex_dtype()
            array = array.astype(small)
    if array.dtype.kind not in "biufc":
        raise TypeError(
            f"a tensor holds numbers, not {type(value).__name__} values of dtype {array.dtype}"
        )
    return _native(array)


def _native(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return ``array`` with NumPy's own dtype object: native byte order, and quick to compare."""
    plain = np.dtype(array.dtype.type)
    return array if array.dtype is plain else array.astype(plain)


def _made_of_python_numbers(value: Any) -> bool:
    return all(
        type(leaf) in (bool, int, float, complex)
        for leaf in flatten(value if isinstance(value, (list, tuple)) else [value])
    )


def _has_tensors(value: Any) -> bool:
    from .variable import Variable

    return isinstance(value, (list, tuple)) and any(
        isinstance(leaf, (Tensor, Variable)) for leaf in flatten(value)
    )


def _is_device_array(value: Any) -> bool:
    try:
        backend_for_type(type(value))
    except TypeError:
        return False
    return True
