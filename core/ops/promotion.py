"""Promotion of dtypes as NumPy does it: in libraries that do it otherwise, and in ops of floats.

The array API standard does not promote integers or booleans with floating numbers, and libraries
that do have rules of their own: PyTorch gives ``float32`` where NumPy and gradtape give
``float64``. Ops that are defined for floating numbers take integers and booleans, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.dtypes import SCALARS, default_dtype, kind_of, numpy_dtype
from ..base.table import F, ops
from ..errors import PluginError

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


def _dtype_of(dtypes: Sequence[Any]) -> np.dtype[Any]:
    """Return the dtype for integers that occur together with arrays of these dtypes.

    It is that of the arrays that are not integers or booleans, or the default dtype.
    """
    known = [d for d in map(numpy_dtype, dtypes) if d.kind not in "biu"]
    return np.result_type(*known) if known else default_dtype()


# -- integers and booleans in ops of floats --------------------------------------------------------


def floating_places(floating: bool | Sequence[str], inputs: Sequence[str], op: str) -> range:
    """Return where an op's inputs must be floating: all or none of them, or the first ones."""
    if isinstance(floating, bool):
        return range(len(inputs) if floating else 0)
    if tuple(floating) != tuple(inputs[: len(floating)]):
        raise PluginError(
            f"op {op!r}: floating must be a boolean or the first of its inputs {inputs}, got "
            f"{floating!r}"
        )
    return range(len(floating))


def in_floats(op: Any, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return an op's kernel that casts the integers and booleans which must be floating."""
    if not op.floating:
        return kernel
    count, whole = len(op.floating), len(op.floating) == len(op.inputs)

    def one(x: Any, **params: Any) -> Any:
        if getattr(x.dtype, "kind", "b") in "biu":
            (x,) = cast_integers((x,), range(1), F.cast)
        return kernel(x, **params)

    def several(*arrays: Any, **params: Any) -> Any:
        for x in arrays if whole else arrays[:count]:
            if type(x) not in SCALARS and getattr(x.dtype, "kind", "b") in "biu":
                arrays = tuple(cast_integers(arrays, _places(op, arrays), F.cast))
                break
        return kernel(*arrays, **params)

    run: Any = one if len(op.inputs) == 1 and not op.variadic else several
    after = getattr(kernel, "on_tensors", None)
    if after is None:
        return run

    def on_tensors(inputs: Sequence[Any], params: dict[str, Any]) -> Any:
        given = as_read(op, inputs)
        return after(inputs, params) if given is inputs else op(*given, **params)

    run.on_tensors = on_tensors
    return run


def as_read(op: Any, inputs: Sequence[Any]) -> Sequence[Any]:
    """Return the tensors that the gradient rules of an op read instead of its inputs.

    They are those that its kernel computes with: integers and booleans are cast.
    """
    places = _places(op, inputs)
    for i in places:
        x = getattr(inputs[i], "array", inputs[i])
        if type(x) not in SCALARS and getattr(x.dtype, "kind", "b") in "biu":
            return tuple(cast_integers(inputs, places, ops["cast"]))
    return inputs


def _places(op: Any, inputs: Sequence[Any]) -> range:
    """Return where inputs of an op must be floating; the last input's name may be of many."""
    whole = len(op.floating) == len(op.inputs)
    return range(len(inputs)) if whole else op.floating


def cast_integers(
    values: Sequence[Any], places: Sequence[int], cast: Callable[..., Any]
) -> list[Any]:
    """Return values, of which integers and booleans at some places are cast."""
    found = list(values)
    dtypes = {i: values[i].dtype for i in places if type(values[i]) not in SCALARS}
    wrong = [i for i, dtype in dtypes.items() if kind_of(dtype) in "biu"]
    if wrong:
        dtype = _dtype_of(list(dtypes.values())).name
        for i in wrong:
            found[i] = cast(found[i], dtype=dtype)
    return found
