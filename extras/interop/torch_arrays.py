"""Arrays of gradtape as tensors of PyTorch, and the other way, by sharing memory where it is safe.

Memory is shared if nobody can write to it unnoticed. A result is shared only if the caller is its
one holder: otherwise PyTorch, which writes in place, could change what gradtape keeps.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Any

import numpy as np
import torch

from ..core.extend import Tensor, backend_of, registry

#: Dtypes of PyTorch that no tensor of gradtape has.
_OTHERS = {
    dtype
    for name in dir(torch)
    if isinstance(dtype := getattr(torch, name), torch.dtype)
    and (name.startswith(("float8", "float4", "quint", "qint", "bits")) or dtype.itemsize == 0)
} | {torch.bfloat16, torch.complex32}


def array_of(tensor: Any) -> Any:
    """Return a tensor's values as an array that shares its memory.

    Raises
    ------
    TypeError
        If gradtape has no such dtype, layout or device.
    """
    if tensor.dtype in _OTHERS:
        raise TypeError(
            f"gradtape has no tensors of {tensor.dtype}: convert it first, as in "
            "x.to(torch.float32)"
        )
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise TypeError(
            f"gradtape has no tensors of the layout {tensor.layout}: use x.to_dense() or "
            "x.dequantize()"
        )
    try:
        return _shared(tensor.detach())
    except RuntimeError as error:  # of torch.export, torch.vmap of another kind, ...
        raise TypeError(
            f"gradtape needs the values of tensors, and this {type(tensor).__name__} of PyTorch "
            f"has none here ({error}): call the function outside of what transforms it"
        ) from error


def _shared(tensor: Any) -> Any:
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    kind = tensor.device.type
    if kind == "cpu":
        return tensor.numpy()
    if kind == "cuda":
        backend: Any = registry().backend("cupy")
        return backend.xp.from_dlpack(tensor)
    raise TypeError(
        f"gradtape has no tensors on the device {tensor.device}: use x.cpu(), or a CUDA device"
    )


def tensor_of(array: Any) -> Any:
    """Return an array as a tensor that shares its memory, which the tensor must not write to."""
    owner = backend_of(array).name
    if owner == "numpy":
        array = np.asarray(array)
        if not array.dtype.isnative or any(step < 0 for step in array.strides):
            array = np.array(array, array.dtype.newbyteorder("="))
        if not array.flags.writeable:  # from_numpy would warn
            return torch.from_dlpack(array)
        return torch.from_numpy(array)
    if owner == "cupy":
        return torch.from_dlpack(array)
    raise TypeError(
        f"PyTorch cannot share arrays of the backend {owner!r}: use x.to('numpy') before"
    )


def _holders(results: list[Any], i: int) -> tuple[int, int]:
    """Return how many hold a tensor of a list, and its array."""
    tensor = results[i]
    array = getattr(tensor, "array", tensor)
    return sys.getrefcount(tensor), sys.getrefcount(array)


#: The counts for a tensor that only the list holds: of gradtape, and of PyTorch.
_ALONE = _holders([Tensor(np.zeros(2))], 0)
_ALONE_IN_TORCH = _holders([torch.zeros(2)], 0)


def own_tensors(results: list[Any]) -> list[Any]:
    """Return results of gradtape as tensors for PyTorch to keep.

    Memory is copied if something else holds it: a variable, a tape, a constant.

    Parameters
    ----------
    results
        The only list that holds these tensors.
    """
    found = []
    for i in range(len(results)):
        tensors, arrays = _holders(results, i)
        array = results[i].array
        whole = type(array) is np.ndarray and array.flags.owndata and array.flags.writeable
        if whole and tensors <= _ALONE[0] and arrays <= _ALONE[1]:
            found.append(tensor_of(array))
        else:
            found.append(tensor_of(array).clone(memory_format=torch.contiguous_format))
    return found


def separate(given: list[Any]) -> None:
    """Give arguments that a function of gradtape has kept their own memory.

    Parameters
    ----------
    given
        The list of arguments, whose memory is PyTorch's. No tape may hold them.

    Raises
    ------
    RuntimeError
        If something else than a tensor holds the memory, such as a variable.
    """
    for i in range(len(given)):
        tensors, arrays = _holders(given, i)
        if arrays > _ALONE[1]:
            raise RuntimeError(
                f"to_torch: the function keeps the memory of argument {i}, of shape "
                f"{list(given[i].shape)}, for instance in a variable, and PyTorch may change it: "
                "pass x.clone()"
            )
        if tensors > _ALONE[0]:
            given[i].array = given[i].array.copy()


def own_arrays(results: list[Any], given: Collection[int]) -> list[Any]:
    """Return results of PyTorch as arrays for gradtape to keep.

    Memory is copied if something else holds it, unless that is memory of gradtape.

    Parameters
    ----------
    results
        The only list that holds these tensors.
    given
        The addresses of memory that gradtape provided.
    """
    found = []
    for i in range(len(results)):
        tensors, _ = _holders(results, i)
        y = results[i]
        shared = y.untyped_storage()
        alone = tensors <= _ALONE_IN_TORCH[0] and y._base is None
        if (alone and torch._C._storage_Use_Count(shared._cdata) <= _ALONE_STORAGE) or (
            shared.data_ptr() in given
        ):
            found.append(array_of(y))
        else:
            found.append(array_of(y.detach().clone()))
    return found


def _users(tensor: Any) -> int:
    """Return how many tensors share the memory of one, and this look at it."""
    shared = tensor.untyped_storage()
    count: int = torch._C._storage_Use_Count(shared._cdata)
    return count


_ALONE_STORAGE = _users(torch.zeros(2))
