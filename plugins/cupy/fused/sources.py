"""Compiles kernels of whole ops, and says which arrays they take."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ....core.extend import registry
from ..launching import CannotCompile, PreparedKernel, report
from ..writing.formulas import compute_type, loaded, memory_type, stored
from ..writing.source import prelude

#: The dtypes that the kernels have, by character.
_CHARS = "efd"

#: The number type of arrays, that of computations, and conversions between them.
_TYPES = """\
typedef {memory} T;
typedef {compute} C;
static __device__ C load(T x) {{ return {loaded}; }}
static __device__ T store(C x) {{ return {stored}; }}
"""


def takes(*arrays: Any) -> bool:
    """Return whether arrays have one dtype that kernels have, and some elements."""
    dtype = arrays[0].dtype
    return dtype.char in _CHARS and all(x.dtype == dtype and x.size for x in arrays)


def whole(xp: Any, x: Any) -> Any:
    """Return an array with its elements one after another in memory."""
    return x if x.flags.c_contiguous else xp.ascontiguousarray(x)


@lru_cache(maxsize=256)
def kernel(xp: Any, name: str, text: str, dtype: Any, labels: Any = None) -> PreparedKernel | None:
    """Return a kernel for numbers of a dtype; None if the library compiles none.

    Parameters
    ----------
    xp
        The array namespace.
    name
        A short description of its computation.
    text
        Its text, in which ``KERNEL`` is its name, ``T`` the type of numbers in memory, and ``C``
        that in which they are computed.
    dtype
        The dtype of the numbers.
    labels
        The dtype of integers, whose type is ``L``.
    """
    if getattr(xp, "RawKernel", None) is None:
        return None
    types = _TYPES.format(
        memory=memory_type(dtype),
        compute=compute_type(dtype),
        loaded=loaded(dtype, "x"),
        stored=stored(dtype, "x"),
    )
    parts = [prelude(types), types]
    if labels is not None:
        parts.append(f"typedef {memory_type(labels)} L;\n")
    try:
        return PreparedKernel(xp, name, "".join([*parts, text]))
    except CannotCompile as error:
        report(error)
        return None


def portable(name: str) -> Callable[..., Any]:
    """Return the portable kernel of an op: a function of the namespace, arrays and parameters."""
    found: Callable[..., Any] = registry().op(name).kernel  # type: ignore[assignment]
    return found
