"""The array API standard without its ops: dtypes, constants, array creation and conversion."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
from numpy import bool as bool
from numpy import can_cast as can_cast
from numpy import complex64 as complex64
from numpy import complex128 as complex128
from numpy import e as e
from numpy import float16 as float16
from numpy import float32 as float32
from numpy import float64 as float64
from numpy import iinfo as iinfo
from numpy import inf as inf
from numpy import int8 as int8
from numpy import int16 as int16
from numpy import int32 as int32
from numpy import int64 as int64
from numpy import isdtype as isdtype
from numpy import nan as nan
from numpy import newaxis as newaxis
from numpy import pi as pi
from numpy import result_type as result_type
from numpy import uint8 as uint8
from numpy import uint16 as uint16
from numpy import uint32 as uint32
from numpy import uint64 as uint64

from ..base.dtypes import as_dtype, default_complex_dtype, default_dtype
from ..base.sizes import Shape, Size, as_shape
from ..base.sizes import broadcast_shapes as broadcast
from ..base.table import ops, public_package, registry
from ..ops.dispatch import TRACED, parse_place, place_of
from .convert import as_tensor, check_unmasked, constant, is_device_array
from .custom_records import placeable
from .methods import check_order
from .tensor import Operators, Tensor

_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
__array_api_version__ = _VERSIONS[-1]


def namespace(api_version: str | None = None) -> Any:
    """Return gradtape as the namespace of the array API standard's functions."""
    if api_version is not None and api_version not in _VERSIONS:
        raise ValueError(
            f"__array_namespace__: api_version must be one of {_VERSIONS}, got {api_version!r}"
        )
    return public_package()


class NamespaceInfo:
    """gradtape's capabilities, as the array API standard defines them."""

    def capabilities(self) -> dict[str, Any]:
        """Return the optional capabilities: boolean indexing and data-dependent shapes.

        Returns
        -------
        dict
            Whether each is supported, by name, and the maximum number of axes.
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Return the device of new tensors, as ``tensor.device`` names it.

        Returns
        -------
        str
            The backend and its device: ``"numpy:cpu"``.
        """
        return constant(0).device

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype[Any]]:
        """Return the dtypes of Python's numbers, by kind.

        Parameters
        ----------
        device
            Ignored: all devices have the same dtypes.

        Returns
        -------
        dict
            A dtype for each of ``"real floating"``, ``"complex floating"``, ``"integral"`` and
            ``"indexing"``.
        """
        return {
            "real floating": default_dtype(),
            "complex floating": default_complex_dtype(),
            "integral": np.dtype(np.int64),
            "indexing": np.dtype(np.int64),
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype[Any]]:
        """Return the standard's dtypes by name: all of them, or those of the given kinds.

        Parameters
        ----------
        device
            Ignored: all devices have the same dtypes.
        kind
            A kind, as for ``gradtape.isdtype``, or a tuple of kinds; all by default.

        Returns
        -------
        dict
            The dtypes by name.

        Raises
        ------
        ValueError
            If there is no such kind.
        """
        found = np.__array_namespace_info__().dtypes(kind=kind)
        return {name: np.dtype(dtype) for name, dtype in found.items()}

    def devices(self) -> tuple[str, ...]:
        """Return the devices of the current backend that are known to exist.

        Returns
        -------
        tuple of str
            The devices, as ``tensor.device`` names them: the default one, and the host.
        """
        host = registry().host_backend
        found = (self.default_device(), f"{host.name}:{host.device(np.empty(0))}")
        return tuple(dict.fromkeys(found))


def __array_namespace_info__() -> NamespaceInfo:
    """Return gradtape's capabilities, as the array API standard defines them.

    Returns
    -------
    NamespaceInfo
        An object with the standard's methods ``capabilities``, ``default_device``,
        ``default_dtypes``, ``devices`` and ``dtypes``.

    Examples
    --------
    >>> gt.__array_namespace_info__().default_device()
    'numpy:cpu'
    """
    return NamespaceInfo()


def broadcast_shapes(*shapes: Any) -> Shape:
    """Return the broadcast shape of several shapes by NumPy's rule.

    Parameters
    ----------
    shapes
        Tuples of sizes, or single sizes. ``None`` is a size that is unknown in a trace.

    Returns
    -------
    tuple
        The common shape.

    Raises
    ------
    ValueError
        If two sizes disagree.
    TypeError
        If a size is not an integer.

    Examples
    --------
    >>> gt.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    given = [
        shape
        if isinstance(shape, tuple) and any(n is None for n in shape)
        else as_shape(shape, "broadcast_shapes")
        for shape in shapes
    ]
    return broadcast(*given, op="broadcast_shapes")


class finfo:
    """The limits of a floating dtype, as Python floats, which take the dtype of other operands.

    Parameters
    ----------
    type
        A floating or complex dtype, or a tensor of one.

    Attributes
    ----------
    bits
        The number of bits of a real number.
    eps
        The distance from 1 to the next larger number.
    max, min
        The largest and the smallest number.
    smallest_normal
        The smallest positive number of full precision.
    dtype
        The dtype of real numbers.

    Raises
    ------
    TypeError
        If ``type`` is not a dtype.
    ValueError
        If it is a dtype of integers.

    Notes
    -----
    It has the other attributes of ``numpy.finfo`` too, such as ``tiny`` and ``resolution``.

    Examples
    --------
    >>> gt.finfo("float32").eps
    1.1920928955078125e-07
    """

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype[Any]

    def __init__(self, type: Any) -> None:
        kind = as_tensor(type).dtype if isinstance(type, Operators) else type
        self._info = np.finfo(as_dtype(kind) if isinstance(kind, str) else kind)
        self.dtype = np.dtype(self._info.dtype)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(self._info, name)
        return float(value) if isinstance(value, np.floating) else value

    def __eq__(self, other: object) -> builtins.bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __reduce__(self) -> Any:
        return finfo, (self.dtype,)

    def __repr__(self) -> str:
        return repr(self._info)


@placeable
def _converted(obj: Any, dtype: Any, *, device: str | None = None) -> Tensor:
    return as_tensor(obj, dtype)


def asarray(
    obj: Any, dtype: Any = None, *, device: str | None = None, copy: builtins.bool | None = None
) -> Tensor:
    """Return ``obj`` as a tensor; a tensor is returned unchanged unless ``copy`` is true.

    Parameters
    ----------
    obj
        Anything that :func:`gradtape.constant` takes.
    dtype
        The dtype; ``obj``'s own by default.
    device
        The device, as ``tensor.device`` names it; by default, a tensor is not moved.
    copy
        True always returns a new tensor. False forbids a copy, and so accepts only tensors of that
        dtype and device.

    Returns
    -------
    Tensor
        The tensor. If ``obj`` is a tensor, gradients reach it.

    Raises
    ------
    ValueError
        If a copy is needed but forbidden.
    TypeError
        If the value is not numeric.

    Examples
    --------
    >>> gt.asarray([1, 2], dtype="float32").tolist()
    [1.0, 2.0]
    """
    if isinstance(obj, Operators) and dtype is not None and as_tensor(obj).dtype == as_dtype(dtype):
        dtype = None  # a cast would be a new tensor in a trace
    result = _converted(obj, dtype, device=device)
    kept = isinstance(obj, Operators) and result.array is as_tensor(obj).array
    if copy is False and not kept:
        raise ValueError(
            f"asarray: {type(obj).__name__} cannot become a tensor of dtype {result.dtype} on "
            f"{result.device} without a copy; leave out copy=False"
        )
    return ops["identity"](result) if copy and kept else result


def array(
    object: Any, dtype: Any = None, *, copy: Any = True, order: str = "K", ndmin: int = 0
) -> Tensor:
    """Return ``object`` as a new tensor; NumPy's name for :func:`asarray` with a copy.

    Parameters
    ----------
    object
        Anything that :func:`gradtape.constant` takes.
    dtype
        The dtype; ``object``'s own by default.
    copy
        False forbids a copy, and so accepts only tensors; ``None`` copies if necessary.
    order
        The order of the elements in memory: it has no effect.
    ndmin
        The minimum number of axes: missing axes, of size 1, come first.

    Returns
    -------
    Tensor
        The tensor. If ``object`` is a tensor, gradients reach it.

    Raises
    ------
    ValueError
        If a copy is needed but forbidden.
    TypeError
        If the value is not numeric.

    Examples
    --------
    >>> gt.array([1, 2], ndmin=2).tolist()
    [[1, 2]]
    """
    check_order(order, "array")
    result = asarray(object, dtype, copy=copy)
    missing = range(ndmin - result.ndim) if ndmin else ()
    return ops["expand_dims"](result, axis=tuple(missing)) if missing else result


def astype(x: Any, dtype: Any, *, copy: builtins.bool = True, device: str | None = None) -> Tensor:
    """Return a tensor cast to ``dtype``; gradients are cast back.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    dtype
        The dtype of the result. Casting complex numbers to real ones drops the imaginary part, and
        casting to integers drops the fraction.
    copy
        Ignored, because a tensor never changes.
    device
        The target device; by default that of ``x``.

    Returns
    -------
    Tensor
        A tensor of the shape of ``x``.

    Raises
    ------
    TypeError
        If no tensor can have the dtype.

    Examples
    --------
    >>> gt.astype(gt.constant([1.7, -1.7]), "int32").tolist()
    [1, -1]
    """
    return asarray(as_tensor(x).astype(dtype), device=device)


@placeable
def empty(shape: Any, dtype: Any = None, *, device: str | None = None) -> Tensor:
    """Return a tensor of zeros: tensors are never uninitialised.

    Parameters
    ----------
    shape
        A size or a sequence of sizes.
    dtype
        The dtype; the default dtype (``float32``) if not given.
    device
        The device, as ``tensor.device`` names it; by default that of new tensors.

    Returns
    -------
    Tensor
        Zeros, on the current backend.

    Raises
    ------
    TypeError
        If a size is not an integer.
    ValueError
        If a size is negative.

    Examples
    --------
    >>> gt.empty(2).tolist()
    [0.0, 0.0]
    """
    sizes = as_shape(shape, "empty")
    if Size in map(type, sizes):
        return ops["broadcast_to"](empty((), dtype), shape=sizes)
    return constant(np.zeros(sizes, default_dtype() if dtype is None else dtype))


@placeable
def empty_like(x: Any, dtype: Any = None, *, device: str | None = None) -> Tensor:
    """Return zeros of the shape of ``x``: tensors are never uninitialised.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    dtype
        The dtype; that of ``x`` if not given.
    device
        The device, as ``tensor.device`` names it; that of ``x`` by default.

    Returns
    -------
    Tensor
        Zeros, of the shape of ``x``.

    Raises
    ------
    TypeError
        If no tensor can have the dtype.

    Examples
    --------
    >>> gt.empty_like(gt.constant([1, 2])).tolist()
    [0, 0]
    """
    zeros: Tensor = ops["zeros_like"](x)
    return zeros if dtype is None else zeros.astype(dtype)


def _to_host(device: str | None) -> dict[str, Any]:
    """Return NumPy's argument for a copy to the host, if that is where a tensor should be."""
    known = device not in (None, TRACED)
    return {"device": "cpu"} if known and registry().backend(parse_place(device)[0]).host else {}


def from_dlpack(
    x: Any, /, *, device: str | None = None, copy: builtins.bool | None = None
) -> Tensor:
    """Return a tensor with the values of another library's array.

    The values are copied, because a tensor never changes and an array may.

    Parameters
    ----------
    x
        An array with the methods ``__dlpack__`` and ``__dlpack_device__``: in host memory, or of a
        backend.
    device
        The device, as ``tensor.device`` names it. By default that of new tensors; an array of a
        backend, other than NumPy's, stays where it is.
    copy
        False forbids a copy, and so accepts only tensors on that device.

    Returns
    -------
    Tensor
        A tensor of the shape and dtype of ``x``.

    Raises
    ------
    AttributeError
        If ``x`` does not support DLPack.
    BufferError
        If a copy is needed but forbidden, or DLPack supports neither dtype nor device.
    TypeError
        If tensors do not support the dtype, or it is a masked array.

    Examples
    --------
    >>> gt.from_dlpack(np.arange(3)).tolist()
    [0, 1, 2]
    """
    check_unmasked(x)
    try:
        if isinstance(x, Operators):
            return asarray(x, device=device, copy=copy)
        if copy is False:
            raise BufferError(
                f"{type(x).__name__} may change and a tensor never does, so its values are copied; "
                "leave out copy=False"
            )
        if is_device_array(x) and not isinstance(x, np.ndarray):
            return asarray(x, device=device or place_of(x))
        return asarray(np.from_dlpack(x, **_to_host(device)), device=device)
    except ValueError as error:  # of asarray, which the standard lets raise another one
        raise BufferError(f"from_dlpack: {str(error).removeprefix('asarray: ')}") from None
    except (AttributeError, BufferError, TypeError) as error:
        raise type(error)(f"from_dlpack: {error}") from None
    except RuntimeError as error:
        if type(error) is not RuntimeError:
            raise
        # NumPy's, for dtypes such as bfloat16
        dtype = getattr(x, "dtype", "unknown")
        raise BufferError(f"from_dlpack: dtype {dtype}: {error}") from None
