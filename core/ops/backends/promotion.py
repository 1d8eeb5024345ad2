"""NumPy's promotion of dtypes, for libraries whose functions promote fewer dtypes, or others.

The array API standard does not promote integers or booleans with floating numbers, and libraries
that do have rules of their own: PyTorch gives ``float32`` where NumPy and gradtape give
``float64``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...base.dtypes import SCALARS, numpy_dtype

_BOOL = np.dtype(bool)
#: NumPy's elementwise functions, and ``matmul``, by name.
_UFUNCS = {name: x for name, x in vars(np).items() if isinstance(x, np.ufunc)}


def promoting(xp: Any, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of arrays that casts its operands as NumPy's function of that name does.

    Parameters
    ----------
    xp
        The array namespace.
    name
        The name of the function there.
    function
        The function.

    Returns
    -------
    callable
        ``function`` itself, if NumPy's function of that name is not elementwise.
    """
    ufunc = _UFUNCS.get(name)
    if ufunc is None:
        return function

    @functools.cache
    def wanted(*kinds: Any) -> tuple[Any, ...] | None:
        """Return the dtype of each operand in NumPy's loop, None where it has that dtype."""
        dtypes = [kind if isinstance(kind, type) else numpy_dtype(kind) for kind in kinds]
        dtypes = [_BOOL if kind is bool else kind for kind in dtypes]
        if name.startswith("logical_"):  # the standard's take nothing else
            return (_BOOL,) * len(dtypes)
        try:
            loop = ufunc.resolve_dtypes((*dtypes, *[None] * ufunc.nout))
        except (TypeError, ValueError):  # NumPy has no such loop; the library may have one
            return None
        pairs = list(zip(dtypes, loop, strict=False))
        if all(isinstance(kind, type) or kind == dtype for kind, dtype in pairs):
            return None
        return tuple([None if isinstance(kind, type) else dtype for kind, dtype in pairs])

    def run(*arrays: Any, **params: Any) -> Any:
        if len(arrays) == 2:
            x, y = arrays
            kinds: tuple[Any, ...] = getattr(x, "dtype", type(x)), getattr(y, "dtype", type(y))
        else:
            kinds = tuple([getattr(x, "dtype", type(x)) for x in arrays])
        dtypes = wanted(*kinds)
        if dtypes is None:
            return function(*arrays, **params)
        return function(*map(functools.partial(_cast, xp), arrays, dtypes), **params)

    return run


def unboolean(values: Sequence[Any]) -> tuple[Any, ...]:
    """Return an op's arrays and scalars; ``True`` and ``False`` become numbers among numbers.

    NumPy promotes them as it promotes boolean arrays; the standard takes them with those only.
    """
    kinds = {numpy_dtype(x.dtype).kind if hasattr(x, "dtype") else "b" for x in values} - {"b"}
    return tuple([int(x) if kinds and type(x) is bool else x for x in values])


def _cast(xp: Any, x: Any, dtype: Any) -> Any:
    if type(x) in SCALARS:
        return x if dtype is None else dtype.type(x).item()
    if dtype is None or numpy_dtype(x.dtype) == dtype:
        return x
    return x.astype(dtype) if hasattr(x, "astype") else xp.astype(x, getattr(xp, dtype.name))
