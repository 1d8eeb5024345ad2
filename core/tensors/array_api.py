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
from numpy import finfo as finfo
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

from ..base.dtypes import default_complex_dtype, default_dtype
from ..base.sizes import Shape, Size, as_shape
from ..base.sizes import broadcast_shapes as broadcast
from ..base.table import ops, public_package, registry
from .convert import as_tensor, check_unmasked, constant
from .custom_records import placeable
from .methods import check_order
from .tensor import Tensor

_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


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

    def devices(self) -> list[str]:
        """Return the devices of the current backend that are known to exist.

        Returns
        -------
        list of str
            The devices, as ``tensor.device`` names them: the default one, and the host.
        """
        host = registry().host_backend
        found = (self.default_device(), f"{host.name}:{host.device(np.empty(0))}")
        return list(dict.fromkeys(found))


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


@placeable
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
        True always returns a new tensor. False forbids a copy, and so accepts only tensors.

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
    result = as_tensor(obj, dtype)
    if copy is False and result is not obj:
        raise ValueError(
            f"asarray: {type(obj).__name__} cannot become a tensor without a copy; leave out "
            "copy=False"
        )
    return ops["identity"](result) if copy and result is obj else result


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


def astype(x: Any, dtype: Any, copy: Any = True, device: Any = None) -> Tensor:
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


def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> Tensor:
    """Return a tensor with the values of another library's array, on the current backend.

    The values are copied, because a tensor never changes and an array may.

    Parameters
    ----------
    x
        An array in host memory, with the methods ``__dlpack__`` and ``__dlpack_device__``.
    device
        The target device, as ``tensor.device`` names it; by default the current backend's.
    copy
        Ignored: the values are always copied.

    Returns
    -------
    Tensor
        A tensor of the shape and dtype of ``x``.

    Raises
    ------
    AttributeError
        If ``x`` does not support DLPack.
    BufferError, TypeError
        If DLPack or tensors do not support its dtype, or it is a masked array.

    Examples
    --------
    >>> gt.from_dlpack(np.arange(3)).tolist()
    [0, 1, 2]
    """
    check_unmasked(x)
    try:
        return asarray(constant(np.from_dlpack(x)), device=device)
    except (AttributeError, BufferError, TypeError) as error:
        raise type(error)(f"from_dlpack: {error}") from None
