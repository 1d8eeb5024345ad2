"""Data types: NumPy's, with ``float32`` as the type of Python floats.

Promotion is NumPy 2's: Python scalars are weak, arrays are not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

#: Python scalars are weak: they take the dtype of the arrays that they are combined with.
SCALARS = frozenset({bool, int, float, complex})

_default = np.dtype(np.float32)
_COMPLEX = {"float16": np.complex64, "float32": np.complex64, "float64": np.complex128}
# The kinds of dtypes that tensors may have: bool, signed, unsigned, float and complex, but not
# object, string or time.
_KINDS = frozenset("biufc")


def default_dtype() -> np.dtype[Any]:
    """Return the dtype of tensors made from Python floats (``float32`` by default).

    Returns
    -------
    numpy.dtype
        ``float16``, ``float32`` or ``float64``.

    Examples
    --------
    >>> gt.default_dtype().name
    'float32'
    """
    return _default


def set_default_dtype(dtype: Any) -> None:
    """Set the dtype of tensors made from Python floats, in the whole process.

    Parameters
    ----------
    dtype
        ``float16``, ``float32`` or ``float64``. Python's complex numbers get the matching precision
        (``complex64`` for ``float16`` too).

    Raises
    ------
    ValueError
        If it is another dtype.

    Examples
    --------
    >>> gt.set_default_dtype("float64")
    >>> gt.constant(1.0).dtype.name
    'float64'
    >>> gt.set_default_dtype("float32")
    """
    global _default
    new = np.dtype(dtype)
    if new.kind != "f" or new.name not in _COMPLEX:
        raise ValueError(
            f"set_default_dtype: the default must be float16, float32 or float64, got {new.name}"
        )
    _default = new


def default_complex_dtype() -> np.dtype[Any]:
    """Return the complex dtype of the default precision."""
    return np.dtype(_COMPLEX[_default.name])


def as_dtype(dtype: Any) -> np.dtype[Any]:
    """Return ``dtype`` as a NumPy dtype; raise for one that tensors cannot have.

    Raises
    ------
    TypeError
        If ``dtype`` is not a boolean, integer, floating or complex type.
    """
    if type(dtype) in DTYPES:
        return dtype
    try:
        result = np.dtype(dtype)
    except TypeError as error:
        refuse_bfloat16(dtype)
        try:
            if type(dtype).__module__ == "builtins":  # not another library's dtype
                raise
            result = numpy_dtype(dtype)
        except TypeError:
            sizes = "; give several sizes as one tuple" if type(dtype) is int else ""
            raise TypeError(
                f"{dtype!r} is not a dtype; use a name such as 'float32'{sizes}"
            ) from error
    if result.kind not in _KINDS:
        refuse_bfloat16(result)
        raise TypeError(
            f"a tensor holds booleans, integers, floats or complex numbers, not dtype {result}"
        )
    return result


def refuse_bfloat16(dtype: Any) -> None:
    """Raise for ``bfloat16`` with a message that says what to use instead."""
    if str(dtype) == "bfloat16":
        raise TypeError(
            "tensors cannot have dtype bfloat16; layers compute in it with "
            "mixed_precision.policy('mixed_bfloat16')"
        )


#: The types of NumPy's dtypes: a look-up is much faster than ``isinstance``.
DTYPES = frozenset(type(np.dtype(char)) for char in "?bhilqBHILQefdgFDG")
# NumPy's dtypes, by other libraries' dtypes of the same name.
_OTHERS: dict[Any, np.dtype[Any]] = {}


def numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the dtype of any library's array as a NumPy dtype.

    Parameters
    ----------
    dtype
        A NumPy dtype, or another whose text ends in the name of one, such as ``torch.float32``.

    Raises
    ------
    TypeError
        If NumPy has no dtype of that name.
    """
    if type(dtype) in DTYPES or isinstance(dtype, np.dtype):
        return dtype
    found = _OTHERS.get(dtype)
    if found is None:
        name = str(dtype).rpartition(".")[2]
        try:
            found = _OTHERS[dtype] = np.dtype(name)
        except TypeError as error:
            raise TypeError(f"a tensor cannot hold {dtype}: NumPy has no such dtype") from error
    return found


def kind_of(dtype: Any) -> str:
    """Return NumPy's letter for the kind of a dtype of any array library: ``"f"``, ``"c"``, ..."""
    kind: str | None = getattr(dtype, "kind", None)
    return kind or numpy_dtype(dtype).kind


def is_differentiable(dtype: np.dtype[Any]) -> bool:
    """Return whether gradients exist for ``dtype``: floating and complex types only."""
    return dtype.kind in "fc"
