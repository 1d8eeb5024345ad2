"""New tensors of evenly spaced numbers, of numbers in equal ratios, and grids."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np

from ....core.extend import (
    Operators,
    Size,
    Tensor,
    as_dtype,
    as_size,
    as_tensor,
    default_dtype,
    functions,
    host_array,
    is_open,
    is_transformed,
    largest,
    on_device_of,
    ops,
    placeable,
    with_each_other,
)
from ..common.dynamic_shapes import any_unknown, known_rank, makes_tables, table
from ..common.kernels import SCALARS, inexact, real_of
from ..common.op_builders import named
from .broadcasting import broadcast_arrays
from .creation import number_dtype
from .rearrangement import moveaxis


@named
@placeable
def arange(
    start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: str | None = None
) -> Tensor:
    """Return evenly spaced numbers from ``start`` up to, but excluding, ``stop``.

    Parameters
    ----------
    start
        The first number; as the only argument it is ``stop``, and the first number is 0.
    stop
        The bound, which is excluded.
    step
        The distance between numbers, 1 by default; it may be negative, but not 0.
    dtype
        The result's dtype. By default ``int64`` for Python integers and the default dtype for
        Python floats; the dtypes of tensors promote.

    Returns
    -------
    A vector of ``ceil((stop - start) / step)`` elements, or of none if that is negative. It has no
    gradient.

    Raises
    ------
    ZeroDivisionError
        If ``step`` is 0.
    TypeError
        If a bound is not a number, or ``dtype`` is not a dtype.

    Examples
    --------
    >>> gt.arange(4).tolist()
    [0, 1, 2, 3]
    >>> gt.arange(0.0, 1.0, 0.25).tolist()
    [0.0, 0.25, 0.5, 0.75]
    """
    if start is None:
        raise TypeError("arange: start must be a number, got None")
    step = 1 if step is None else step
    bounds = (0, start, step) if stop is None else (start, stop, step)
    if any_unknown(*bounds):
        return _made_open("arange", bounds, dtype)
    if dtype is None:
        # Python integers are weak, the step by default too
        dtype = np.result_type(*(x if type(x) is int else host_array(x) for x in bounds))
    dtype = as_dtype(dtype)
    if dtype.kind in "iu" and makes_tables() and _all_fit(bounds, dtype):
        made: Tensor = table("arange", *bounds, dtype.name, dtype=dtype)
        return made
    return as_tensor(np.arange(*bounds, dtype=dtype))


def _all_fit(numbers: tuple[Any, ...], dtype: np.dtype[Any]) -> bool:
    """Return whether all numbers are Python integers in the range of a dtype."""
    limits = np.iinfo(dtype)
    return all(type(x) is int and limits.min <= x <= limits.max for x in numbers)


def _made_open(name: str, given: tuple[Any, ...], dtype: Any) -> Tensor:
    """Return numbers made from unknown ones; the dtype is that of known ones."""
    numbers = [_number(x, name) for x in given]
    result = functions[name](*map(_one_like, given), dtype=dtype).dtype
    # what NumPy computes in and what the result is may be two dtypes
    asked = result.name if name == "arange" else None if dtype is None else as_dtype(dtype).name
    made: Tensor = table(name, *numbers, asked, dtype=result)
    return made


def _one_like(x: Any) -> Any:
    """Return 1 instead of a number, of its type or dtype."""
    if hasattr(x, "dtype"):
        return np.ones((), x.dtype)
    if is_open(x):
        return 1 if isinstance(x, Size) else 1.0
    return x if isinstance(x, bool) else type(x)(1)


def _number(x: Any, name: str) -> Any:
    """Return a number as a parameter; a traced integer becomes an unknown size."""
    if isinstance(x, Operators):
        tensor = as_tensor(x)
        whole = any_unknown(tensor) and tensor.dtype.kind in "iu"
        return as_size(tensor, name) if whole else tensor.numpy().item()
    return x.item() if isinstance(x, (np.ndarray, np.generic)) else x


@overload
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    dtype: Any = None,
    *,
    retstep: Literal[False] = False,
    axis: int = 0,
    device: str | None = None,
) -> Tensor: ...
@overload
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    dtype: Any = None,
    *,
    retstep: Literal[True],
    axis: int = 0,
    device: str | None = None,
) -> tuple[Tensor, Tensor]: ...


@named
@placeable
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    dtype: Any = None,
    *,
    retstep: bool = False,
    axis: int = 0,
    device: str | None = None,
) -> Any:
    """Return evenly spaced numbers from ``start`` to ``stop``.

    Parameters
    ----------
    start, stop
        The bounds: numbers or tensors, which broadcast. Gradients reach tensors.
    num
        How many numbers, 50 by default.
    endpoint
        Whether ``stop`` is the last number; otherwise it is one step beyond.
    dtype
        The result's dtype. By default that of the bounds, complex if one is, ``float64`` for
        tensors of integers, and the default dtype for Python numbers. Integers are rounded down.
    retstep
        Also return the distance between numbers.
    axis
        Where the new axis is in the result, first by default.

    Returns
    -------
    A vector of ``num`` elements, or for tensor bounds a tensor with a new axis of that size. With
    ``retstep``, a pair of that and the distance, a tensor of the bounds' shape, which is nan if
    there are fewer than two numbers.

    Raises
    ------
    ValueError
        If ``num`` is negative, or the bounds do not broadcast.

    Examples
    --------
    >>> gt.linspace(0.0, 1.0, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    >>> gt.linspace(0.0, 1.0, 4, endpoint=False).tolist()
    [0.0, 0.25, 0.5, 0.75]
    >>> gt.linspace(0.0, 1.0, 5, retstep=True)[1].item()
    0.25
    """
    if retstep or axis != 0:
        whole = _finished(linspace(start, stop, num, endpoint, dtype), None, axis)
        return (whole, _step(start, stop, num - 1 if endpoint else num)) if retstep else whole
    count = _count(num, "linspace")
    if any_unknown(start, stop, count) and _plain(start, stop):
        return _made_open("linspace", (start, stop, count, bool(endpoint)), dtype)
    if _on_host(count, start, stop):
        array = np.linspace(start, stop, count, endpoint, dtype=dtype)
        return _made(array, dtype, start, stop)
    kind = None if dtype is None else as_dtype(dtype)
    _check_real(kind, start, stop)
    result = even_steps(*_ends(start, stop), count, endpoint)
    if kind is not None and kind.kind in "iu":
        result = ops["floor"](result)
    return result if kind is None else ops["cast"](result, dtype=kind.name)


def _check_real(kind: Any, *bounds: Any) -> None:
    real = kind is not None and kind.kind in "iuf"
    if real and any(as_tensor(bound).dtype.kind == "c" for bound in bounds):
        raise TypeError(f"linspace: complex numbers cannot become {kind}; take the real part")


def _count(num: Any, name: str) -> Any:
    count = as_size(num, name)
    if (count < 0) is True:
        raise ValueError(f"{name}: num must be at least 0, got {num}")
    return count


def _plain(*values: Any) -> bool:
    """Return whether values are numbers, or integers that a trace treats as such."""
    return all(is_open(x) or isinstance(x, SCALARS) for x in values)


def _on_host(count: Any, *values: Any) -> bool:
    """Return whether NumPy knows all values."""
    return not is_open(count) and not any(isinstance(x, Operators) or is_open(x) for x in values)


def _gaps(count: Any, endpoint: bool) -> Any:
    """Return the number of gaps between numbers, at least 1."""
    return largest(1, count - 1 if endpoint else count)


def _made(array: Any, dtype: Any, *given: Any) -> Tensor:
    """Return NumPy's result as a tensor; Python numbers have the default dtype."""
    if dtype is None and not any(isinstance(x, (np.ndarray, np.generic)) for x in given):
        single = {"f": default_dtype(), "c": np.result_type(default_dtype(), np.complex64)}
        array = array.astype(single.get(array.dtype.kind, array.dtype))
    return as_tensor(array)


def _ends(start: Any, stop: Any, *dtypes: Any) -> tuple[Any, Any]:
    """Return two bounds, one or both of them tensors, in their common floating or complex dtype."""
    tensor = as_tensor(
        stop if isinstance(stop, Operators) and not (isinstance(start, Operators)) else start
    )
    start, stop = on_device_of(start, tensor), on_device_of(stop, tensor)
    kind = inexact(np.result_type(start.dtype, stop.dtype, *dtypes)).name
    return _in_dtype(start, kind), _in_dtype(stop, kind)


def _in_dtype(x: Any, kind: str) -> Any:
    return x if x.dtype.name == kind else ops["cast"](x, dtype=kind)


def even_steps(start: Any, stop: Any, count: Any, endpoint: bool) -> Any:
    """Return evenly spaced numbers along a new first axis, with the last one exact."""
    kind = start.dtype.name
    if kind == "float16":  # in which the distance may be infinite
        start, stop = (ops["cast"](x, dtype="float32") for x in (start, stop))
    way = stop - start
    step = way / _gaps(count, endpoint)
    result = start + _numbered(_counted(count), way) * step
    if endpoint and (count > 1) is not False:
        result = _with_row(result, count, _gaps(count, True), stop)
    return _in_dtype(result, kind)


def _counted(count: Any) -> Any:
    return arange(count) if is_open(count) else np.arange(count)


def _numbered(numbers: Any, like: Any) -> Any:
    """Return numbers along a first axis before those of ``like``, in its real dtype."""
    ones = [1] * known_rank(like, "linspace")
    return on_device_of(numbers.astype(real_of(like.dtype)).reshape(-1, *ones), like)


def _with_row(result: Any, count: Any, row: Any, values: Any) -> Any:
    """Return the numbers with others in one row, if there is such a row."""
    here = _counted(count) == row
    ones = [1] * (len(result.shape) - 1)
    return ops["where"](on_device_of(here.reshape(-1, *ones), result), values, result)


def _step(start: Any, stop: Any, gaps: Any) -> Tensor:
    """Return the distance between numbers with ``gaps`` gaps between two bounds."""
    if is_open(gaps) or is_open(start) or is_open(stop):
        return _open_step(start, stop, gaps)
    if not isinstance(start, Operators) and not isinstance(stop, Operators):
        way = np.multiply(stop, 1.0) - np.multiply(start, 1.0)  # unsigned ones would wrap
        kind = np.result_type(number_dtype(None), way.dtype if way.dtype.kind == "c" else "f2")
        return as_tensor((way / gaps if gaps > 0 else way * np.nan).astype(kind))
    first, last = _ends(start, stop)
    return ops["multiply"](last - first, 1.0 / gaps if gaps > 0 else float("nan"))


def _open_step(start: Any, stop: Any, gaps: Any) -> Tensor:
    kind = None
    if _plain(start, stop):
        kind = linspace(_one_like(start), _one_like(stop), 2).dtype.name
        start, stop = (as_tensor(x, np.result_type(kind, np.float64)) for x in (start, stop))
    first, last = _ends(start, stop)
    share = ops["where"](gaps > 0, as_tensor(1.0 / largest(1, gaps), "float64"), float("nan"))
    step = (last - first) * _in_dtype(share, real_of(last.dtype).name)
    return step if kind is None else _in_dtype(step, kind)


def _finished(result: Any, dtype: Any, axis: int) -> Any:
    if dtype is not None:
        result = ops["cast"](result, dtype=as_dtype(dtype).name)
    return result if axis == 0 else moveaxis(result, 0, axis)


@named
def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Tensor:
    """Return powers of ``base``, with exponents evenly spaced from ``start`` to ``stop``.

    Parameters
    ----------
    start, stop
        The first and last exponent: numbers or tensors, which broadcast.
    num
        How many powers, 50 by default.
    endpoint
        Whether ``stop`` is the last exponent; otherwise it is one step beyond.
    base
        A number or tensor, 10 by default.
    dtype
        The result's dtype. By default that of the exponents and the base, ``float64`` for tensors
        of integers, and the default dtype for Python numbers.
    axis
        The position of the axis of size ``num``; the first by default.

    Returns
    -------
    A tensor of the shape of ``start`` and ``stop`` broadcast together, with the new axis. Gradients
    reach ``start``, ``stop`` and ``base`` if they are tensors.

    Raises
    ------
    ValueError
        If ``num`` is negative, or ``start`` and ``stop`` do not broadcast.

    Examples
    --------
    >>> gt.logspace(0, 3, 4, base=2.0).tolist()
    [1.0, 2.0, 4.0, 8.0]
    """
    count = _count(num, "logspace")
    if any_unknown(start, stop, count, base) and _plain(start, stop, base):
        result = _made_open("logspace", (start, stop, count, bool(endpoint), base), dtype)
        return _finished(result, None, axis)
    if _on_host(count, start, stop, base):
        array = np.logspace(start, stop, count, endpoint, base, dtype, axis)
        return _made(array, dtype, start, stop, base)
    if _on_host(0, start, stop):
        base = as_tensor(base)
        start = on_device_of(np.asarray(start, inexact(np.result_type(base.dtype, start))), base)
    start, stop = _ends(start, stop)
    if not isinstance(base, SCALARS):
        base = on_device_of(base, start)
        rank, most = known_rank(base, "logspace"), known_rank(start + stop, "logspace")
        if rank:  # an axis of its own for the exponents
            more = tuple(range(max(rank - most, 0)))
            start, stop = (ops["expand_dims"](x, axis=more) for x in (start + 0 * stop, stop))
            base = ops["expand_dims"](base, axis=0)
    exponents = even_steps(start, stop, count, endpoint)
    return _finished(ops["power"](base, exponents), dtype, axis)


@named
def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Tensor:
    """Return numbers in geometric progression from ``start`` to ``stop``.

    Parameters
    ----------
    start, stop
        The first and last number, not 0: real numbers of the same sign, or complex ones; they
        broadcast.
    num
        How many numbers, 50 by default.
    endpoint
        Whether ``stop`` is the last number; otherwise it is one step beyond.
    dtype
        The result's dtype. By default that of the bounds, complex if one is, ``float64`` for
        tensors of integers, and the default dtype for Python numbers.
    axis
        Where the axis of size ``num`` is; the first by default.

    Returns
    -------
    A tensor of the shape of ``start`` and ``stop`` broadcast together, with the new axis. Gradients
    reach ``start`` and ``stop`` if they are tensors.

    Raises
    ------
    ValueError
        If ``num`` is negative, a bound is 0, or ``start`` and ``stop`` do not broadcast.

    Notes
    -----
    ``start * (stop / start) ** share``, with shares evenly spaced from 0 to 1: complex numbers
    are on a spiral that turns by half a circle at most. A trace does not know whether a bound is 0.

    Examples
    --------
    >>> gt.geomspace(1, 8, 4).tolist()
    [1.0, 2.0, 4.0, 8.0]
    """
    count = _count(num, "geomspace")
    if any_unknown(start, stop, count) and _plain(start, stop):
        result = _made_open("geomspace", (start, stop, count, bool(endpoint)), dtype)
        return _finished(result, None, axis)
    if _on_host(count, start, stop):
        array = np.geomspace(start, stop, count, endpoint, dtype, axis)
        return _made(array, dtype, start, stop)
    start, stop = _ends(start, stop, *([] if dtype is None else [as_dtype(dtype)]))
    for end in (start, stop):
        if not is_transformed(end.array) and bool((end == 0).any()):
            raise ValueError("geomspace: start and stop must not be 0")
    if start.dtype.kind == "c":
        ratio = stop / start
        shares = _counted(count) / _gaps(count, endpoint)
        return _finished(start * ratio ** _numbered(shares, ratio), dtype, axis)
    kind, sign = start.dtype.name, ops["sign"](start)
    first, last = (ops["log10"](ops["cast"](x / sign, dtype="float64")) for x in (start, stop))
    result = ops["cast"](ops["power"](10.0, even_steps(first, last, count, endpoint)), dtype=kind)
    result = (
        result * sign
        if not is_open(count) and not count
        else (_with_row(result * sign, count, 0, start))
    )
    if endpoint and (count > 1) is not False:
        result = _with_row(result, count, _gaps(count, True), stop)
    return _finished(result, dtype, axis)


@named
def meshgrid(
    *arrays: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Tensor, ...]:
    """Return the coordinates of a grid from those along each of its axes.

    Parameters
    ----------
    arrays
        Vectors of coordinates; a number is one of size 1.
    copy
        Only for NumPy's signature: tensors never change.
    sparse
        Leave each result with size 1 along the other axes, to be broadcast.
    indexing
        ``"ij"``: result axis i belongs to array i; ``"xy"`` (the default): the first two are
        exchanged, as in a picture.

    Returns
    -------
    tuple of Tensor
        A tensor per array, of its dtype, with as many axes as there are arrays.

    Raises
    ------
    ValueError
        If ``indexing`` is another word.

    Examples
    --------
    >>> x, y = gt.meshgrid(gt.arange(3), gt.arange(2))
    >>> x.tolist()
    [[0, 1, 2], [0, 1, 2]]
    >>> y.tolist()
    [[0, 0, 0], [1, 1, 1]]
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}")
    rank = len(arrays)
    order = list(range(rank))
    if indexing == "xy" and rank > 1:
        order[:2] = [1, 0]
    grids = []
    for place, x in zip(order, with_each_other(arrays), strict=True):
        shape = tuple(-1 if i == place else 1 for i in range(rank))
        grids.append(ops["reshape"](x, shape=shape))
    return tuple(grids) if sparse else broadcast_arrays(*grids)
