"""``Methods``: NumPy's array methods and protocols for tensors and variables."""

from __future__ import annotations

import sys
from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from ..base.context import active_tapes
from ..base.dtypes import as_dtype
from ..base.sizes import as_shape
from ..base.table import functions, lazy_module, ops

if TYPE_CHECKING:
    from .tensor import Tensor

#: Why a gradient ends at Python's ``round``, which programs use to shorten a number.
_ROUNDED = (
    "Python's round() has derivative zero: use the tensor itself and round what you show, or "
    "gradtape.round if zero is meant"
)


def _never_changes(name: str, instead: str) -> TypeError:
    return TypeError(
        f"{name}: NumPy's method changes an array in place, and a tensor never changes; use "
        f"{instead}, which returns a new tensor"
    )


def _with_options(name: str, options: dict[str, Any], *args: Any) -> Tensor:
    """Call the public function, or say what PyTorch's arguments are called here."""
    for theirs, ours in (("dim", "axis"), ("keepdim", "keepdims")):
        if theirs in options:
            raise TypeError(f"{name} takes no argument {theirs!r}; use {ours}")
    result: Tensor = functions[name](*args, **options)
    return result


def check_order(order: Any, place: str) -> None:
    """Raise, naming ``place``, if ``order`` is not an order of elements in memory."""
    if order not in ("C", "F", "A", "K"):
        kind = ValueError if isinstance(order, str) else TypeError
        raise kind(f"{place}: order must be 'C', 'F', 'A' or 'K', got {order!r}")


class Methods:
    """NumPy's array methods except operators; the functions of the same names document them."""

    __slots__ = ()

    # -- reductions ------------------------------------------------------------------------------
    # options: dtype=, initial= and where=, as in the functions

    def sum(self, axis: Any = None, keepdims: bool = False, **options: Any) -> Tensor:
        """Sum over ``axis`` (all axes by default)."""
        if options:
            return _with_options("sum", options, self, axis, keepdims)
        return ops["sum"](self, axis=axis, keepdims=keepdims)

    def mean(self, axis: Any = None, keepdims: bool = False, **options: Any) -> Tensor:
        """Mean over ``axis`` (all axes by default)."""
        if options:
            return _with_options("mean", options, self, axis, keepdims)
        return ops["mean"](self, axis=axis, keepdims=keepdims)

    def prod(self, axis: Any = None, keepdims: bool = False, **options: Any) -> Tensor:
        """Product over ``axis`` (all axes by default)."""
        if options:
            return _with_options("prod", options, self, axis, keepdims)
        return ops["prod"](self, axis=axis, keepdims=keepdims)

    def max(self, axis: Any = None, keepdims: bool = False, **options: Any) -> Tensor:
        """Maximum over ``axis`` (all axes by default)."""
        if options:
            return _with_options("max", options, self, axis, keepdims)
        return ops["max"](self, axis=axis, keepdims=keepdims)

    def min(self, axis: Any = None, keepdims: bool = False, **options: Any) -> Tensor:
        """Minimum over ``axis`` (all axes by default)."""
        if options:
            return _with_options("min", options, self, axis, keepdims)
        return ops["min"](self, axis=axis, keepdims=keepdims)

    def ptp(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """Largest minus smallest element over ``axis`` (all axes by default)."""
        return functions["ptp"](self, axis, keepdims)

    def var(
        self, axis: Any = None, ddof: float = 0, keepdims: bool = False, **options: Any
    ) -> Tensor:
        """Variance over ``axis`` (all axes by default)."""
        if options:
            return _with_options("var", options, self, axis, ddof, keepdims)
        return ops["var"](self, axis=axis, ddof=ddof, keepdims=keepdims)

    def std(
        self, axis: Any = None, ddof: float = 0, keepdims: bool = False, **options: Any
    ) -> Tensor:
        """Standard deviation over ``axis`` (all axes by default)."""
        if options:
            return _with_options("std", options, self, axis, ddof, keepdims)
        return ops["std"](self, axis=axis, ddof=ddof, keepdims=keepdims)

    def any(self, axis: Any = None, keepdims: bool = False, **options: Any) -> Tensor:
        """Whether any element is true, over ``axis`` (all axes by default)."""
        if options:
            return _with_options("any", options, self, axis, keepdims)
        return ops["any"](self, axis=axis, keepdims=keepdims)

    def all(self, axis: Any = None, keepdims: bool = False, **options: Any) -> Tensor:
        """Whether all elements are true, over ``axis`` (all axes by default)."""
        if options:
            return _with_options("all", options, self, axis, keepdims)
        return ops["all"](self, axis=axis, keepdims=keepdims)

    def argmax(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        """Index of the largest element along ``axis`` (in the flattened tensor by default)."""
        return ops["argmax"](self, axis=axis, keepdims=keepdims)

    def argmin(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        """Index of the smallest element along ``axis`` (in the flattened tensor by default)."""
        return ops["argmin"](self, axis=axis, keepdims=keepdims)

    def cumsum(self, axis: int | None = None, dtype: Any = None) -> Tensor:
        """Running sum along ``axis`` (of the flattened tensor by default)."""
        return functions["cumsum"](self, axis, dtype)

    def cumprod(self, axis: int | None = None, dtype: Any = None) -> Tensor:
        """Running product along ``axis`` (of the flattened tensor by default)."""
        return functions["cumprod"](self, axis, dtype)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Tensor:
        """Sum of a diagonal."""
        return functions["trace"](self, offset, axis1, axis2, dtype)

    def dot(self, other: Any) -> Tensor:
        """Dot product with another array."""
        return functions["dot"](self, other)

    # -- shape -----------------------------------------------------------------------------------

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Tensor:
        """Return the same elements in another shape; one size may be -1.

        ``order="F"`` reads and fills them by columns. ``copy`` has no effect, because a tensor
        never changes.
        """
        new = shape[0] if len(shape) == 1 else shape
        if order != "C":
            return functions["reshape"](self, new, order)
        return ops["reshape"](self, shape=as_shape(new, "reshape"))

    def ravel(self, order: str = "C") -> Tensor:
        """Return the elements along one axis, by rows; by columns with ``order="F"``."""
        return functions["ravel"](self, order)

    def flatten(self, order: str = "C") -> Tensor:
        """Return the elements along one axis, by rows; by columns with ``order="F"``."""
        return functions["ravel"](self, order)

    def squeeze(self, axis: Any = None) -> Tensor:
        """Return the tensor without axes of size 1 (those of ``axis``, or all)."""
        return functions["squeeze"](self, axis)

    def swapaxes(self, axis1: int, axis2: int) -> Tensor:
        """Return the tensor with two axes exchanged."""
        return functions["swapaxes"](self, axis1, axis2)

    def transpose(self, *axes: Any) -> Tensor:
        """Permute the axes (reverse them by default)."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return ops["transpose"](self, axes=tuple(order) if order else None)

    @property
    def T(self) -> Tensor:
        """The tensor with its axes reversed."""
        return ops["transpose"](self, axes=None)

    @property
    def mT(self) -> Tensor:
        """The tensor with its last two axes exchanged."""
        return ops["swapaxes"](self, axis1=-1, axis2=-2)

    # -- selection -------------------------------------------------------------------------------

    def take(self, indices: Any, axis: int | None = None, *, mode: str = "raise") -> Tensor:
        """Return entries by index along ``axis`` (of the flattened tensor by default)."""
        return functions["take"](self, indices, axis, mode)

    def choose(self, choices: Any, mode: str = "raise") -> Tensor:
        """Return elements of ``choices``, selected by these indices."""
        return functions["choose"](self, choices, mode=mode)

    def compress(self, condition: Any, axis: int | None = None) -> Tensor:
        """Return the entries along ``axis`` where a condition is true."""
        return functions["compress"](condition, self, axis)

    def repeat(self, repeats: Any, axis: int | None = None) -> Tensor:
        """Return the tensor with each element repeated."""
        return functions["repeat"](self, repeats, axis)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
        """Return a diagonal as the last axis."""
        return functions["diagonal"](self, offset, axis1, axis2)

    def nonzero(self) -> tuple[Tensor, ...]:
        """Return the indices of the nonzero elements, a vector per axis."""
        return functions["nonzero"](self)

    def argsort(
        self, axis: int | None = -1, kind: str | None = None, *, stable: bool | None = None
    ) -> Tensor:
        """Return the indices that sort along ``axis``; equal elements keep their order."""
        return functions["argsort"](self, axis, kind, stable=stable)

    def searchsorted(self, values: Any, side: str = "left", sorter: Any = None) -> Tensor:
        """Return the indices at which values would be inserted into this sorted vector."""
        return functions["searchsorted"](self, values, side, sorter)

    # -- elements --------------------------------------------------------------------------------

    def copy(self, order: str = "C") -> Tensor:
        """Return a new tensor with the same values; gradients reach this one.

        ``order``, the order of the elements in memory, has no effect.
        """
        check_order(order, "copy")
        return ops["identity"](self)

    def astype(
        self: Any, dtype: Any, order: str = "K", casting: Any = "unsafe", *, copy: bool = True
    ) -> Tensor:
        """Return the tensor cast to ``dtype``.

        ``order`` and ``copy`` have no effect. A cast that ``casting`` does not allow raises
        ``TypeError``.
        """
        try:
            wanted = as_dtype(dtype)
        except TypeError as error:
            raise TypeError(f"astype: {error}") from error
        check_order(order, "astype")
        if type(casting) is not str:
            raise TypeError(f"astype: casting must be a string, got {casting!r}")
        if casting != "unsafe" and not np.can_cast(self.dtype, wanted, cast(Any, casting)):
            raise TypeError(
                f"astype: {self.dtype} cannot be cast to {wanted} with casting={casting!r}"
            )
        return ops["cast"](self, dtype=wanted.name)

    def clip(self, min: Any = None, max: Any = None) -> Tensor:
        """Limit the elements to an interval; ``None`` means no bound."""
        return functions["clip"](self, min, max)

    def round(self, decimals: int = 0) -> Tensor:
        """Round the elements, halves to even."""
        return functions["round"](self, decimals)

    def __round__(self: Any, decimals: int | None = None) -> Tensor:
        x = self._read()
        rounded: Tensor = x.round(decimals or 0)
        for tape in active_tapes.get():
            tape.record_lost((x,), (0,), (rounded,), _ROUNDED)
        return rounded

    def conj(self: Any) -> Tensor:
        """Return the complex conjugate."""
        conjugate: Tensor = ops["conj"](self) if self.dtype.kind != "b" else self.copy()
        return conjugate

    def conjugate(self: Any) -> Tensor:
        """Return the complex conjugate."""
        conjugate: Tensor = ops["conj"](self) if self.dtype.kind != "b" else self.copy()
        return conjugate

    @property
    def nbytes(self: Any) -> int:
        """The memory of all elements, in bytes."""
        return self.size * self.itemsize

    @property
    def itemsize(self: Any) -> int:
        """The memory of one element, in bytes."""
        return self.dtype.itemsize

    @property
    def real(self) -> Tensor:
        """The real part."""
        return ops["real"](self)

    @property
    def imag(self) -> Tensor:
        """The imaginary part."""
        return ops["imag"](self)

    # -- NumPy's protocols -----------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if _is_asked_for_values():
            theirs = ufunc if method == "__call__" else getattr(ufunc, method)
            return _of_arrays(theirs, inputs, kwargs)
        return lazy_module("core.tensors.numpy_protocols").call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if _is_asked_for_values():
            return _of_arrays(func, args, kwargs)
        return lazy_module("core.tensors.numpy_protocols").call_function(func, args, kwargs)

    # -- in-place methods, which tensors refuse --------------------------------------------------

    def sort(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise: a tensor is not sorted in place; ``gradtape.sort`` returns a new one."""
        raise _never_changes("sort", "gradtape.sort(x, axis)")

    def partition(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise: a tensor is not partitioned in place; ``gradtape.partition`` returns a new one."""
        raise _never_changes("partition", "gradtape.partition(x, kth, axis)")

    def fill(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise: a tensor is not filled in place; ``gradtape.full_like`` returns a new one."""
        raise _never_changes("fill", "gradtape.full_like(x, value)")

    def put(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise: a tensor is not changed in place; use ``x.at[index].set(values)``."""
        raise _never_changes("put", "x.ravel().at[indices].set(values).reshape(x.shape)")

    def resize(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise: a tensor is not resized in place; ``gradtape.resize`` returns a new one."""
        raise _never_changes("resize", "gradtape.resize(x, shape)")


#: Packages that keep or draw values: what they ask of NumPy is about arrays, not about tensors.
_OF_VALUES = frozenset({"matplotlib", "mpl_toolkits", "pandas"})


def _is_asked_for_values() -> bool:
    """Return whether one of the packages calls NumPy that would keep a tensor as it is."""
    name: str = sys._getframe(2).f_globals.get("__name__", "")
    return name.partition(".")[0] in _OF_VALUES


def _of_arrays(function: Any, args: Any, kwargs: Any) -> Any:
    """Call a function of NumPy with arrays instead of tensors, which tapes see as a read."""
    return function(*map(_as_array, args), **{key: _as_array(x) for key, x in kwargs.items()})


def _as_array(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [*map(_as_array, value)] if isinstance(value, list) else (*map(_as_array, value),)
    return np.asarray(value) if isinstance(value, Methods) else value


def named_for_users(cls: type) -> None:
    """Make Python's messages about wrong arguments name ``Tensor``, not the base class."""
    for name, member in vars(cls).items():
        if isinstance(member, FunctionType):
            member.__qualname__ = f"Tensor.{name}"


named_for_users(Methods)
