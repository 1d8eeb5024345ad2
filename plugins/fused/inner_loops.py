"""NumPy's own inner loops: the compiled functions with which ufuncs compute contiguous elements.

A group calls them between its own loops, on blocks of elements. So a step without a form, such as
``tanh``, has NumPy's bits. NumPy provides them to compilers such as Numba's, by two methods of
ufuncs that fill in a structure. Each is compared with its ufunc before it is used.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

_STRUCTURE = b"numpy_1.24_ufunc_call_info"
_WORD = ctypes.sizeof(ctypes.c_void_p)
#: The elements that are compared, and the number of those in each call.
_SAMPLE = [*np.linspace(-3, 3, 240), 0.0, -0.0, 1.0, 2.0, 0.5, 40.0, -40.0, np.nan]
_PART = 37


class InnerLoop:
    """The inner loop of a ufunc for given dtypes.

    Attributes
    ----------
    dtypes
        Those of the operands and of the result.
    pointers
        The addresses of ``function(context, arrays, lengths, strides, data)``, of its context and
        of its data.
    silent
        Whether NumPy ignores the floating-point flags that it sets.
    """

    __slots__ = ("_info", "dtypes", "pointers", "silent")

    def __init__(self, ufunc: Any, given: tuple[Any, ...]) -> None:
        self.dtypes, self._info = ufunc._resolve_dtypes_and_context((*given, None))
        ufunc._get_strided_loop(self._info)
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        address = get(self._info, _STRUCTURE)
        words = (ctypes.c_void_p * 3).from_address(address)
        needs_python, self.silent = (ctypes.c_bool * 2).from_address(address + 3 * _WORD)
        if needs_python:
            raise TypeError(f"{ufunc.__name__} for {self.dtypes} needs Python")
        self.pointers: list[int] = [word or 0 for word in words]

    def __call__(self, *arrays: Any) -> None:
        """Compute the last array from the others, which are contiguous or have no axes."""
        function, context, data = self.pointers
        places = (ctypes.c_void_p * len(arrays))(*(x.ctypes.data for x in arrays))
        length = (ctypes.c_ssize_t * 1)(arrays[-1].size)
        steps = (x.itemsize if x.ndim else 0 for x in arrays)
        strides = (ctypes.c_ssize_t * len(arrays))(*steps)
        run = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 5)(function)
        run(context, places, length, strides, data)


@cache
def inner_loop(
    ufunc: np.ufunc, given: tuple[Any, ...], single: tuple[bool, ...]
) -> InnerLoop | None:
    """Return the inner loop of a ufunc of floating-point numbers, if it gives the ufunc's bits.

    Parameters
    ----------
    ufunc
        The ufunc.
    given
        The dtypes of its arguments; the type of a Python scalar.
    single
        Which arguments are single elements, which some loops compute in another way.
    """
    try:
        loop = InnerLoop(ufunc, given)
    except (AttributeError, TypeError, ValueError):  # NumPy has another interface, or no such loop
        return None
    # loops of integers raise errors, for which they need Python
    if ufunc.nout != 1 or any(x.char not in "fd" for x in loop.dtypes[:-1]):
        return None
    return loop if _has_its_bits(loop, ufunc, single) else None


def _has_its_bits(loop: InnerLoop, ufunc: np.ufunc, single: tuple[bool, ...]) -> bool:
    """Return whether the parts of a sample are those that the ufunc computes."""
    *of, kind = loop.dtypes
    given = [
        np.array(2.0, dtype) if one else np.roll(_SAMPLE, 31 * i).astype(dtype)
        for i, (dtype, one) in enumerate(zip(of, single, strict=True))
    ]
    length = 1 if all(single) else len(_SAMPLE)
    with np.errstate(all="ignore"):
        whole = ufunc(*given, out=np.empty(length, kind))
        found = np.empty_like(whole)
        for a in range(0, length, _PART):
            here = slice(a, a + _PART)
            loop(*(x[here] if x.ndim else x for x in given), found[here])
    return found.tobytes() == whole.tobytes()
