"""``Methods``: NumPy's array methods for tensors and variables, each a call of the function."""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..base.dtypes import as_dtype
from ..base.spec import as_shape
from ..base.table import ops, public

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = ["Methods"]


def _never_changes(name: str, instead: str) -> TypeError:
    return TypeError(
        f"{name}: NumPy's method changes an array in place, and a tensor never changes; "
        f"{instead} returns another"
    )


def _check_order(method: str, order: str) -> None:
    """Refuse the orders of elements that NumPy has beside that of C, the one that tensors have."""
    if order in ("F", "A", "K"):
        raise ValueError(
            f"{method}: order={order!r} is not supported; elements go by rows (order='C'). Use .T "
            "before (and after) to go by columns"
        )
    if order != "C":
        raise ValueError(f"{method}: order must be 'C', got {order!r}")


class Methods:
    """NumPy's methods of arrays, apart from operators; the functions of these names tell more."""

    __slots__ = ()

    # -- reductions ------------------------------------------------------------------------------
    # options: dtype=, initial= and where=, as the functions take them

    def sum(self, axis: Any = None, keepdims: bool = False, **options: Any) -> Tensor:
        """Return the sum over ``axis``; see :func:`gradtape.sum`.

        Parameters
        ----------
        axis
            The axis or axes to reduce; all by default.
        keepdims
            Keep the axes with size 1.
        options
            ``dtype``, ``initial`` and ``where``, as the function takes them.

        Returns
        -------
        Tensor
            The sums, without the axes (or with size 1 there).

        Raises
        ------
        numpy.exceptions.AxisError
            If an axis is out of bounds.
        """
        if options:
            return public("sum")(self, axis, keepdims, **options)
        return ops["sum"](self, axis=axis, keepdims=keepdims)

    def mean(self, axis: Any = None, keepdims: bool = False, **options: Any) -> Tensor:
        """Return the mean over ``axis``; see :func:`gradtape.mean`.

        Parameters
        ----------
        axis
            The axis or axes to reduce; all by default.
        keepdims
            Keep the axes with size 1.
        options
            ``dtype`` and ``where``, as the function takes them.

        Returns
        -------
        Tensor
            The means, without the axes (or with size 1 there).

        Raises
        ------
        numpy.exceptions.AxisError
            If an axis is out of bounds.
        """
        if options:
            return public("mean")(self, axis, keepdims, **options)
        return ops["mean"](self, axis=axis, keepdims=keepdims)

    def prod(self, axis: Any = None, keepdims: bool = False, **options: Any) -> Tensor:
        """Return the product over ``axis``; see :func:`gradtape.prod`.

        Parameters
        ----------
        axis
            The axis or axes to reduce; all by default.
        keepdims
            Keep the axes with size 1.
        options
            ``dtype``, ``initial`` and ``where``, as the function takes them.

        Returns
        -------
        Tensor
            The products, without the axes (or with size 1 there).

        Raises
        ------
        numpy.exceptions.AxisError
            If an axis is out of bounds.
        """
        if options:
            return public("prod")(self, axis, keepdims, **options)
        return ops["prod"](self, axis=axis, keepdims=keepdims)

    def max(self, axis: Any = None, keepdims: bool = False, **options: Any) -> Tensor:
        """Return the maximum over ``axis``; see :func:`gradtape.max`.

        Parameters
        ----------
        axis
            The axis or axes to reduce; all by default.
        keepdims
            Keep the axes with size 1.
        options
            ``initial`` and ``where``, as the function takes them.

        Returns
        -------
        Tensor
            The largest elements, without the axes (or with size 1 there).

        Raises
        ------
        numpy.exceptions.AxisError
            If an axis is out of bounds.
        """
        if options:
            return public("max")(self, axis, keepdims, **options)
        return ops["max"](self, axis=axis, keepdims=keepdims)

    def min(self, axis: Any = None, keepdims: bool = False, **options: Any) -> Tensor:
        """Return the minimum over ``axis``; see :func:`gradtape.min`.

        Parameters
        ----------
        axis
            The axis or axes to reduce; all by default.
        keepdims
            Keep the axes with size 1.
        options
            ``initial`` and ``where``, as the function takes them.

        Returns
        -------
        Tensor
            The smallest elements, without the axes (or with size 1 there).

        Raises
        ------
        numpy.exceptions.AxisError
            If an axis is out of bounds.
        """
        if options:
            return public("min")(self, axis, keepdims, **options)
        return ops["min"](self, axis=axis, keepdims=keepdims)

    def ptp(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """Return the largest less the smallest element over ``axis``; see :func:`gradtape.ptp`.

        Parameters
        ----------
        axis
            The axis or axes to reduce; all by default.
        keepdims
            Keep the axes with size 1.

        Returns
        -------
        Tensor
            The differences, without the axes (or with size 1 there).

        Raises
        ------
        numpy.exceptions.AxisError
            If an axis is out of bounds.
        """
        return public("ptp")(self, axis, keepdims)

    def var(
        self, axis: Any = None, ddof: float = 0, keepdims: bool = False, **options: Any
    ) -> Tensor:
        """Return the variance over ``axis``; see :func:`gradtape.var`.

        Parameters
        ----------
        axis
            The axis or axes to reduce; all by default.
        ddof
            What is subtracted from the number of elements to divide by; 0 by default.
        keepdims
            Keep the axes with size 1.
        options
            ``dtype``, ``where`` and others, as the function takes them.

        Returns
        -------
        Tensor
            The variances, without the axes (or with size 1 there).

        Raises
        ------
        numpy.exceptions.AxisError
            If an axis is out of bounds.
        """
        if options:
            return public("var")(self, axis, ddof, keepdims, **options)
        return ops["var"](self, axis=axis, ddof=ddof, keepdims=keepdims)

    def std(
        self, axis: Any = None, ddof: float = 0, keepdims: bool = False, **options: Any
    ) -> Tensor:
        """Return the standard deviation over ``axis``; see :func:`gradtape.std`.

        Parameters
        ----------
        axis
            The axis or axes to reduce; all by default.
        ddof
            What is subtracted from the number of elements to divide by; 0 by default.
        keepdims
            Keep the axes with size 1.
        options
            ``dtype``, ``where`` and others, as the function takes them.

        Returns
        -------
        Tensor
            The standard deviations, without the axes (or with size 1 there).

        Raises
        ------
        numpy.exceptions.AxisError
            If an axis is out of bounds.
        """
        if options:
            return public("std")(self, axis, ddof, keepdims, **options)
        return ops["std"](self, axis=axis, ddof=ddof, keepdims=keepdims)

    def any(self, axis: Any = None, keepdims: bool = False, **options: Any) -> Tensor:
        """Return whether any element is true, over ``axis``; see :func:`gradtape.any`.

        Parameters
        ----------
        axis
            The axis or axes to reduce; all by default.
        keepdims
            Keep the axes with size 1.
        options
            ``where``, as the function takes it.

        Returns
        -------
        Tensor
            Booleans, without the axes (or with size 1 there).

        Raises
        ------
        numpy.exceptions.AxisError
            If an axis is out of bounds.
        """
        if options:
            return public("any")(self, axis, keepdims, **options)
        return ops["any"](self, axis=axis, keepdims=keepdims)

    def all(self, axis: Any = None, keepdims: bool = False, **options: Any) -> Tensor:
        """Return whether all elements are true, over ``axis``; see :func:`gradtape.all`.

        Parameters
        ----------
        axis
            The axis or axes to reduce; all by default.
        keepdims
            Keep the axes with size 1.
        options
            ``where``, as the function takes it.

        Returns
        -------
        Tensor
            Booleans, without the axes (or with size 1 there).

        Raises
        ------
        numpy.exceptions.AxisError
            If an axis is out of bounds.
        """
        if options:
            return public("all")(self, axis, keepdims, **options)
        return ops["all"](self, axis=axis, keepdims=keepdims)

    def argmax(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        """Return the index of the largest element along ``axis``; see :func:`gradtape.argmax`.

        Parameters
        ----------
        axis
            The axis; by default the index is that in the flattened tensor.
        keepdims
            Keep the axes with size 1.

        Returns
        -------
        Tensor
            Indices of dtype ``int64``; the first of several that are equal. They have no gradient.

        Raises
        ------
        ValueError
            If there are no elements.
        numpy.exceptions.AxisError
            If the axis is out of bounds.
        """
        return ops["argmax"](self, axis=axis, keepdims=keepdims)

    def argmin(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        """Return the index of the smallest element along ``axis``; see :func:`gradtape.argmin`.

        Parameters
        ----------
        axis
            The axis; by default the index is that in the flattened tensor.
        keepdims
            Keep the axes with size 1.

        Returns
        -------
        Tensor
            Indices of dtype ``int64``; the first of several that are equal. They have no gradient.

        Raises
        ------
        ValueError
            If there are no elements.
        numpy.exceptions.AxisError
            If the axis is out of bounds.
        """
        return ops["argmin"](self, axis=axis, keepdims=keepdims)

    def cumsum(self, axis: int | None = None, dtype: Any = None) -> Tensor:
        """Return the running sum along ``axis``; see :func:`gradtape.cumsum`.

        Parameters
        ----------
        axis
            The axis; by default that of the flattened tensor.
        dtype
            The dtype to compute in; by default NumPy's.

        Returns
        -------
        Tensor
            A tensor of as many elements.

        Raises
        ------
        numpy.exceptions.AxisError
            If an axis is out of bounds.
        """
        return public("cumsum")(self, axis, dtype)

    def cumprod(self, axis: int | None = None, dtype: Any = None) -> Tensor:
        """Return the running product along ``axis``; see :func:`gradtape.cumprod`.

        Parameters
        ----------
        axis
            The axis; by default that of the flattened tensor.
        dtype
            The dtype to compute in; by default NumPy's.

        Returns
        -------
        Tensor
            A tensor of as many elements.

        Raises
        ------
        numpy.exceptions.AxisError
            If an axis is out of bounds.
        """
        return public("cumprod")(self, axis, dtype)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Tensor:
        """Return the sum of a diagonal; see :func:`gradtape.trace`.

        Parameters
        ----------
        offset
            How far above the main diagonal, if positive; below it if negative.
        axis1, axis2
            The axes of the rows and of the columns.
        dtype
            The dtype to sum in; by default NumPy's.

        Returns
        -------
        Tensor
            A tensor without the two axes.

        Raises
        ------
        ValueError
            If the two axes are the same.
        numpy.exceptions.AxisError
            If an axis is out of bounds.
        """
        return public("trace")(self, offset, axis1, axis2, dtype)

    def dot(self, other: Any) -> Tensor:
        """Return the dot product with another array; see :func:`gradtape.dot`.

        Parameters
        ----------
        other
            The right-hand operand.

        Returns
        -------
        Tensor
            The product.

        Raises
        ------
        ValueError
            If the joined axes differ in size.
        """
        return public("dot")(self, other)

    # -- shape -----------------------------------------------------------------------------------

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Tensor:
        """Return the same elements in another shape; see :func:`gradtape.reshape`.

        Parameters
        ----------
        shape
            The sizes, or one sequence of them; one may be -1, and takes what is left.
        order
            ``"C"``: elements go by rows. No other is supported.
        copy
            Changes nothing: a tensor never changes, so that none can tell.

        Returns
        -------
        Tensor
            A tensor of the new shape.

        Raises
        ------
        ValueError
            If the elements do not fill the shape, or ``order`` is another.
        """
        if order != "C":
            _check_order("reshape", order)
        new = shape[0] if len(shape) == 1 else shape
        return ops["reshape"](self, shape=as_shape(new, "reshape"))

    def ravel(self, order: str = "C") -> Tensor:
        """Return the elements along one axis; see :func:`gradtape.ravel`.

        Parameters
        ----------
        order
            ``"C"``: elements go by rows. No other is supported.

        Returns
        -------
        Tensor
            A tensor of shape ``(size,)``.

        Raises
        ------
        ValueError
            If ``order`` is another.
        """
        _check_order("ravel", order)
        return ops["reshape"](self, shape=(-1,))

    def flatten(self, order: str = "C") -> Tensor:
        """Return the elements along one axis; see :func:`gradtape.ravel`.

        Parameters
        ----------
        order
            ``"C"``: elements go by rows. No other is supported.

        Returns
        -------
        Tensor
            A tensor of shape ``(size,)``.

        Raises
        ------
        ValueError
            If ``order`` is another.
        """
        _check_order("flatten", order)
        return ops["reshape"](self, shape=(-1,))

    def squeeze(self, axis: Any = None) -> Tensor:
        """Return the tensor without axes of size 1; see :func:`gradtape.squeeze`.

        Parameters
        ----------
        axis
            The axis or axes to remove; by default all of size 1.

        Returns
        -------
        Tensor
            A tensor of fewer axes.

        Raises
        ------
        ValueError
            If an axis to remove has another size.
        """
        return public("squeeze")(self, axis)

    def swapaxes(self, axis1: int, axis2: int) -> Tensor:
        """Return the tensor with two axes exchanged; see :func:`gradtape.swapaxes`.

        Parameters
        ----------
        axis1, axis2
            The axes to exchange.

        Returns
        -------
        Tensor
            The tensor with the two axes in each other's place.

        Raises
        ------
        numpy.exceptions.AxisError
            If an axis is out of bounds.
        """
        return public("swapaxes")(self, axis1, axis2)

    def transpose(self, *axes: Any) -> Tensor:
        """Return the tensor with its axes in another order; see :func:`gradtape.transpose`.

        Parameters
        ----------
        axes
            Every axis once, or one sequence of them; in reverse order by default.

        Returns
        -------
        Tensor
            The tensor with its axes in the new order.

        Raises
        ------
        ValueError
            If ``axes`` does not name every axis once.
        """
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
        """Return entries picked by index along ``axis``; see :func:`gradtape.take`.

        Parameters
        ----------
        indices
            Integers of any shape.
        axis
            The axis; by default that of the flattened tensor.
        mode
            What becomes of an index out of bounds: ``"raise"``, ``"wrap"`` or ``"clip"``.

        Returns
        -------
        Tensor
            The entries, with the axes of ``indices`` in the place of ``axis``.

        Raises
        ------
        IndexError
            If an index is out of bounds, with ``mode="raise"``.
        """
        return public("take")(self, indices, axis, mode)

    def choose(self, choices: Any, mode: str = "raise") -> Tensor:
        """Return elements of ``choices``, picked by these indices; see :func:`gradtape.choose`.

        Parameters
        ----------
        choices
            A sequence of tensors that broadcast with this one.
        mode
            What becomes of an index out of bounds: ``"raise"``, ``"wrap"`` or ``"clip"``.

        Returns
        -------
        Tensor
            A tensor of the common shape.

        Raises
        ------
        ValueError
            If an index is out of bounds, with ``mode="raise"``.
        """
        return public("choose")(self, choices, mode=mode)

    def compress(self, condition: Any, axis: int | None = None) -> Tensor:
        """Return the entries for which a condition holds; see :func:`gradtape.compress`.

        Parameters
        ----------
        condition
            A boolean per entry.
        axis
            The axis of the entries; by default that of the flattened tensor.

        Returns
        -------
        Tensor
            The entries, in order.

        Raises
        ------
        ValueError
            If the condition is no vector.
        """
        return public("compress")(condition, self, axis)

    def repeat(self, repeats: Any, axis: int | None = None) -> Tensor:
        """Return the tensor with each element several times in a row; see :func:`gradtape.repeat`.

        Parameters
        ----------
        repeats
            One integer, or one for each entry along ``axis``.
        axis
            The axis to repeat along; by default that of the flattened tensor.

        Returns
        -------
        Tensor
            The repeated elements.

        Raises
        ------
        ValueError
            If a number is negative, or their number is not the size of the axis.
        """
        return public("repeat")(self, repeats, axis)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
        """Return a diagonal, as the last axis; see :func:`gradtape.diagonal`.

        Parameters
        ----------
        offset
            How far above the main diagonal, if positive; below it if negative.
        axis1, axis2
            The axes of the rows and of the columns.

        Returns
        -------
        Tensor
            A tensor without the two axes, and with the diagonal last.

        Raises
        ------
        ValueError
            If the two axes are the same.
        numpy.exceptions.AxisError
            If an axis is out of bounds.
        """
        return public("diagonal")(self, offset, axis1, axis2)

    def nonzero(self) -> tuple[Tensor, ...]:
        """Return the indices of the elements that are not 0; see :func:`gradtape.nonzero`.

        Returns
        -------
        tuple of Tensor
            A vector of indices per axis, of dtype ``int64``; how many there are, a trace does not
            know.

        Raises
        ------
        ValueError
            If there are no axes.
        """
        return public("nonzero")(self)

    def argsort(self, axis: int = -1) -> Tensor:
        """Return the indices that sort along ``axis``; see :func:`gradtape.argsort`.

        Parameters
        ----------
        axis
            The axis; the last by default.

        Returns
        -------
        Tensor
            Indices of dtype ``int64``; equal elements keep their order. They have no gradient.

        Raises
        ------
        numpy.exceptions.AxisError
            If the axis is out of bounds.
        """
        return ops["argsort"](self, axis=axis)

    def searchsorted(self, values: Any, side: str = "left", sorter: Any = None) -> Tensor:
        """Return where values would go into this sorted vector; see :func:`gradtape.searchsorted`.

        Parameters
        ----------
        values
            Numbers of any shape.
        side
            Where a value goes beside equal ones: ``"left"`` of them (the default) or ``"right"``.
        sorter
            Indices that sort the vector, if it is not sorted itself.

        Returns
        -------
        Tensor
            Indices of dtype ``int64``, of the shape of ``values``. They have no gradient.

        Raises
        ------
        ValueError
            If ``side`` is another word, or this is no vector.
        """
        return public("searchsorted")(self, values, side, sorter)

    # -- elements --------------------------------------------------------------------------------

    def copy(self, order: str = "C") -> Tensor:
        """Return the same values as a tensor of its own; gradients reach this one.

        Parameters
        ----------
        order
            Changes nothing: the order of elements in memory shows nowhere.

        Returns
        -------
        Tensor
            A tensor of the same shape and dtype, with another identity on tapes.
        """
        return ops["identity"](self)

    def astype(
        self: Any, dtype: Any, order: str = "K", casting: Any = "unsafe", *, copy: bool = True
    ) -> Tensor:
        """Return the tensor cast to ``dtype``; gradients are cast back.

        Parameters
        ----------
        dtype
            The dtype of the result.
        order, copy
            Change nothing: they are taken for NumPy's sake.
        casting
            What is allowed, as for ``numpy.can_cast``: everything (``"unsafe"``) by default.

        Returns
        -------
        Tensor
            A tensor of the same shape.

        Raises
        ------
        TypeError
            If no tensor can have the dtype, or ``casting`` does not allow it.
        """
        try:
            wanted = as_dtype(dtype)
        except TypeError as error:
            raise TypeError(f"astype: {error}") from error
        if casting != "unsafe" and not np.can_cast(self.dtype, wanted, casting):
            raise TypeError(
                f"astype: {self.dtype} cannot become {wanted} according to the rule {casting!r}"
            )
        return ops["cast"](self, dtype=wanted.name)

    def clip(self, min: Any = None, max: Any = None) -> Tensor:
        """Limit the elements to an interval; see :func:`gradtape.clip`.

        Parameters
        ----------
        min, max
            The bounds, which broadcast; ``None`` is no bound.

        Returns
        -------
        Tensor
            A tensor of the common shape.

        Raises
        ------
        ValueError
            If the bounds do not broadcast.
        """
        return public("clip")(self, min, max)

    def round(self, decimals: int = 0) -> Tensor:
        """Round the elements, halves to even; see :func:`gradtape.round`.

        Parameters
        ----------
        decimals
            How many places after the point; before it, if negative.

        Returns
        -------
        Tensor
            A tensor of the same shape and dtype. The gradient is 0.
        """
        return ops["round"](self, decimals=decimals)

    def __round__(self, decimals: int | None = None) -> Tensor:
        return self.round(decimals or 0)

    def conj(self) -> Tensor:
        """Return the complex conjugate.

        Returns
        -------
        Tensor
            A tensor of the same shape and dtype.
        """
        return ops["conj"](self)

    def conjugate(self) -> Tensor:
        """Return the complex conjugate.

        Returns
        -------
        Tensor
            A tensor of the same shape and dtype.
        """
        return ops["conj"](self)

    @property
    def nbytes(self: Any) -> int:
        """The memory that the elements take, in bytes."""
        return self.size * self.itemsize

    @property
    def itemsize(self: Any) -> int:
        """The memory that an element takes, in bytes."""
        return self.dtype.itemsize

    @property
    def real(self) -> Tensor:
        """The real part."""
        return ops["real"](self)

    @property
    def imag(self) -> Tensor:
        """The imaginary part."""
        return ops["imag"](self)

    # -- in place, which a tensor never is -------------------------------------------------------

    def sort(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse to sort in place, as NumPy's method does; ``gradtape.sort`` returns a tensor.

        Parameters
        ----------
        args, kwargs
            What NumPy's method takes.

        Raises
        ------
        TypeError
            Always.
        """
        raise _never_changes("sort", "gradtape.sort(x, axis)")

    def partition(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse to change the order in place; ``gradtape.partition`` returns a tensor.

        Parameters
        ----------
        args, kwargs
            What NumPy's method takes.

        Raises
        ------
        TypeError
            Always.
        """
        raise _never_changes("partition", "gradtape.partition(x, kth, axis)")

    def fill(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse to fill in place; ``gradtape.full_like`` returns a tensor.

        Parameters
        ----------
        args, kwargs
            What NumPy's method takes.

        Raises
        ------
        TypeError
            Always.
        """
        raise _never_changes("fill", "gradtape.full_like(x, value)")

    def put(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse to write in place; ``x.at[index].set(values)`` returns a tensor.

        Parameters
        ----------
        args, kwargs
            What NumPy's method takes.

        Raises
        ------
        TypeError
            Always.
        """
        raise _never_changes("put", "x.ravel().at[indices].set(values).reshape(x.shape)")

    def resize(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse to change the shape in place; ``gradtape.resize`` returns a tensor.

        Parameters
        ----------
        args, kwargs
            What NumPy's method takes.

        Raises
        ------
        TypeError
            Always.
        """
        raise _never_changes("resize", "gradtape.resize(x, shape)")


def named_for_users(cls: type) -> None:
    """Let Python's messages on wrong arguments say ``Tensor.sum()``, for methods of a base."""
    for name, member in vars(cls).items():
        if isinstance(member, FunctionType):
            member.__qualname__ = f"Tensor.{name}"


named_for_users(Methods)
