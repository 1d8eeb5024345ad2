"""``x[index]`` as an op: integers, slices, ``None``, ``...``, integer and boolean arrays.

``x.at[index]`` changes the same elements in a new tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ..base.array_types import encode_index
from ..base.dtypes import SCALARS
from ..base.sizes import as_symbol, broadcast_shapes, is_open
from ..base.table import F, ops
from ..base.user_code import name_assigned_to, warn_user
from ..ops.dispatch import backend_of, is_transformed, to_numpy
from .convert import (
    as_tensor,
    check_fits_dtype,
    host_array,
    made_of_python_numbers,
    of_backend,
    with_others,
)
from .tensor import Tensor
from .variable import Variable


def getitem(x: Any, index: Any) -> Tensor:
    """Return ``x[index]``: basic and advanced indexing as in NumPy.

    Raises
    ------
    IndexError
        If an index has another type, there are too many, or one is out of range.
    """
    template, arrays = _encode_index(x, index)
    try:
        result: Tensor = ops["getitem"](x, *arrays, index=template)
    except IndexError as error:
        raise _index_error(x, index, error) from None
    return result


def _index_error(x: Any, index: Any, error: IndexError) -> IndexError:
    reason = str(error).removeprefix("getitem: ")
    return IndexError(f"getitem: index {index!r} does not fit shape {x.shape}: {reason}")


def _encode_index(x: Any, index: Any) -> tuple[tuple[Any, ...], list[Tensor]]:
    """Return an index as a parameter of ops, and the arrays in it."""
    return encode_index(index, lambda part: _index_array(part, x.array))


class At:
    """``x.at``: index it to select the elements to change."""

    __slots__ = ("_x",)

    def __init__(self, x: Any) -> None:
        self._x = x

    def __getitem__(self, index: Any) -> Place:
        return Place(as_tensor(self._x), index)


def refuse_item(x: Any, index: Any, values: Any) -> None:
    """Raise for ``x[index] = values``: no tensor changes in place."""
    name = name_assigned_to()
    raise TypeError(
        f"a Tensor does not change: instead of {name}[index] = values, write "
        f"{name} = {name}.at[index].set(values), or {name} = gradtape.writable({name}) before, "
        "whose elements can be assigned to; for a Variable, v.assign(v.at[index].set(values))"
    )


class Place:
    """Elements of a tensor; each method returns a new tensor with these elements changed.

    Values broadcast to the shape of ``x[index]`` and take the dtype of ``x``. Gradients reach the
    values and the unchanged elements.
    """

    __slots__ = ("_index", "_x")

    def __init__(self, x: Tensor, index: Any) -> None:
        self._x = x
        self._index = index

    def get(self) -> Tensor:
        """Return the elements: ``x[index]``.

        Returns
        -------
        Tensor
            The elements.

        Raises
        ------
        IndexError
            If the index does not fit.
        """
        return getitem(self._x, self._index)

    def set(self, values: Any) -> Tensor:
        """Replace the elements; for a repeated index, the last value is kept.

        Parameters
        ----------
        values
            The new elements; they broadcast to the shape of ``x[index]``.

        Returns
        -------
        Tensor
            A tensor of the shape and dtype of ``x``.

        Raises
        ------
        ValueError
            If the values do not broadcast to the shape of ``x[index]``.
        TypeError
            If their dtype is of a higher kind than that of ``x``, such as floats for integers.
        IndexError
            If the index does not fit.

        Examples
        --------
        >>> gt.constant([1.0, 2.0, 3.0]).at[1:].set(0.0).tolist()
        [1.0, 0.0, 0.0]
        """
        result: Tensor
        if self._is_mask_per_example() and (type(values) in SCALARS or as_tensor(values).ndim == 0):
            # it selects a different number of elements in each example; one value fits them all
            self._check_kind(values, values, "at[...].set")
            check_fits_dtype(values, self._x.dtype, "at[...].set")
            value = values if type(values) in SCALARS else ops["cast_like"](values, self._x)
            result = ops["where"](self._index, value, self._x)
            return result
        template, arrays, fitted = self._fit(values, "set")
        result = ops["index_set"](self._x, fitted, *arrays, index=template)
        return result

    def add(self, values: Any) -> Tensor:
        """Add to the elements, once for each time that an index is repeated.

        Parameters
        ----------
        values
            The values to add; they broadcast to the shape of ``x[index]``.

        Returns
        -------
        Tensor
            A tensor of the shape and dtype of ``x``.

        Raises
        ------
        ValueError, TypeError, IndexError
            As for :meth:`set`.
        """
        template, arrays, fitted = self._fit(values, "add")
        return self._x + ops["index_add_like"](fitted, self._x, *arrays, index=template)

    def subtract(self, values: Any) -> Tensor:
        """Subtract from the elements, once for each time that an index is repeated.

        Parameters
        ----------
        values
            The values to subtract; they broadcast to the shape of ``x[index]``.

        Returns
        -------
        Tensor
            A tensor of the shape and dtype of ``x``.

        Raises
        ------
        ValueError, TypeError, IndexError
            As for :meth:`set`.
        """
        template, arrays, fitted = self._fit(values, "subtract")
        return self._x - ops["index_add_like"](fitted, self._x, *arrays, index=template)

    def multiply(self, values: Any) -> Tensor:
        """Multiply the elements, once for each time that an index is repeated.

        Parameters
        ----------
        values
            The factors; they broadcast to the shape of ``x[index]``.

        Returns
        -------
        Tensor
            A tensor of the shape and dtype of ``x``.

        Raises
        ------
        ValueError, TypeError, IndexError
            As for :meth:`set`.
        """
        return self._combine(values, "multiply", "prod")

    def divide(self, values: Any) -> Tensor:
        """Divide the elements, once for each time that an index is repeated.

        Parameters
        ----------
        values
            The divisors; they broadcast to the shape of ``x[index]``.

        Returns
        -------
        Tensor
            A tensor of the shape and dtype of ``x``.

        Raises
        ------
        ValueError, TypeError, IndexError
            As for :meth:`set`; also TypeError if ``x`` is not floating or complex.
        """
        if self._x.dtype.kind not in "fc":
            raise TypeError(
                f"at[...].divide: a tensor of {self._x.dtype} cannot hold quotients; cast it with "
                "astype"
            )
        return self._combine(values, "divide", "prod")

    def max(self, values: Any) -> Tensor:
        """Replace each element by the largest of itself and its values.

        If several are equally large, they share the gradient.

        Parameters
        ----------
        values
            The values to compare with; they broadcast to the shape of ``x[index]``.

        Returns
        -------
        Tensor
            A tensor of the shape and dtype of ``x``.

        Raises
        ------
        ValueError, TypeError, IndexError
            As for :meth:`set`.
        """
        return self._combine(values, "maximum", "max")

    def min(self, values: Any) -> Tensor:
        """Replace each element by the smallest of itself and its values.

        If several are equally small, they share the gradient.

        Parameters
        ----------
        values
            The values to compare with; they broadcast to the shape of ``x[index]``.

        Returns
        -------
        Tensor
            A tensor of the shape and dtype of ``x``.

        Raises
        ------
        ValueError, TypeError, IndexError
            As for :meth:`set`.
        """
        return self._combine(values, "minimum", "min")

    def apply(self, fn: Callable[[Tensor], Any]) -> Tensor:
        """Replace the elements by ``fn(x[index])``, once even if an index is repeated.

        Parameters
        ----------
        fn
            A function of the tensor ``x[index]``; its result broadcasts to the same shape.

        Returns
        -------
        Tensor
            A tensor of the shape and dtype of ``x``.

        Raises
        ------
        ValueError, TypeError, IndexError
            As for :meth:`set`.
        """
        return self.set(fn(self.get()))

    def _combine(self, values: Any, pair: str, reduction: str) -> Tensor:
        """Combine elements with values: in pairs, or by a reduction if an index may be repeated."""
        x = self._x
        method = {"maximum": "max", "minimum": "min"}.get(pair, pair)
        template, arrays, fitted = self._fit(values, method)
        result: Tensor
        if all(array.dtype.kind == "b" for array in arrays):
            changed = ops[pair](ops["getitem"](x, *arrays, index=template), fitted)
            result = ops["index_set"](x, ops["cast_like"](changed, x), *arrays, index=template)
            return result
        # a column for each element of x: its own value, and below it the values for it
        places = ops["getitem"](ops["numbered_like"](x), *arrays, index=template)
        place = ops["reshape"](places, shape=(-1,))
        turn = ops["occurrences"](place)
        own = ops["reshape"](x, shape=(1, -1))
        ones = ops["one_per_occurrence"](x, turn)
        filled = ones if reduction == "prod" else ops["broadcast_like"](own, ones)
        table = ops["index_set"](
            filled,
            ops["reshape"](fitted, shape=(-1,)),
            *(turn, place),
            index=(("array", 0), ("array", 1)),
        )
        if pair == "divide":
            return x / ops["reshape_like"](ops["prod"](table, axis=0), x)
        whole = ops[reduction](ops["concatenate"](own, table, axis=0), axis=0)
        result = ops["cast_like"](ops["reshape_like"](whole, x), x)
        return result

    def _fit(self, values: Any, method: str) -> tuple[tuple[Any, ...], list[Tensor], Tensor]:
        x, name = self._x, f"at[...].{method}"
        template, arrays = _encode_index(x, self._index)
        try:  # on bare arrays: only the shape of the elements matters, so no tape has to record it
            picked = F.getitem(x.array, *[part.array for part in arrays], index=template)
        except IndexError as error:
            raise _index_error(x, self._index, error) from None
        if type(values) is Tensor and _alike(values.array, picked):
            return template, arrays, values  # the usual case: no op to record
        given = values
        if type(values) not in SCALARS:
            # a size is weak, and each run checks whether it fits the dtype, as for Python numbers
            weak = is_open(values)
            values = Tensor(as_symbol(values, [x.dtype])) if weak else with_others(values, (x,))
            shape = broadcast_shapes(values.shape, picked.shape, op=name)
            if None not in (shape, picked.shape) and len(shape or ()) > len(picked.shape):
                raise ValueError(
                    f"{name}: values of shape {values.shape} do not fit shape {picked.shape}"
                )
        self._check_kind(values, given, name)
        check_fits_dtype(given, x.dtype, name)
        return template, arrays, ops["broadcast_like"](values, Tensor(picked))

    def _check_kind(self, values: Any, given: Any, name: str) -> None:
        x = self._x
        kind = values if type(values) in SCALARS else as_tensor(values).dtype
        if not np.can_cast(np.result_type(kind, x.dtype), x.dtype, "same_kind"):
            raise TypeError(
                f"{name}: a tensor of {x.dtype} cannot hold values of dtype "
                f"{np.result_type(kind)}; cast one of them with astype"
            )
        listed = isinstance(given, (list, tuple))
        weak = type(given) in SCALARS or (listed and made_of_python_numbers(list(given)))
        if not weak and _halves(as_tensor(values).dtype, x.dtype):
            warn_user(
                f"{name} rounds values of {values.dtype} to {x.dtype}, the dtype of the tensor. "
                "gradtape.zeros, ones and eye make float32 tensors, unless dtype= or "
                'gradtape.set_default_dtype("float64") says otherwise; to round on purpose, write '
                f"values.astype({str(x.dtype)!r})",
                UserWarning,
            )

    def _is_mask_per_example(self) -> bool:
        mask = self._index
        return (
            type(mask) is Tensor
            and is_transformed(mask.array)
            and not mask.array.traced
            and mask.dtype.kind == "b"
            and self._x.shape is not None
            and mask.shape == self._x.shape
        )


def _halves(values: np.dtype[Any], own: np.dtype[Any]) -> bool:
    """Return whether double precision would be rounded to single or half precision."""
    return values in _DOUBLE and own.kind in "fc" and not np.can_cast(values, own, "safe")


_DOUBLE = frozenset({np.dtype("float64"), np.dtype("complex128")})


def _alike(a: Any, b: Any) -> bool:
    """Return whether two of NumPy's arrays have one shape and dtype."""
    kinds = (np.ndarray, np.generic)
    if not (isinstance(a, kinds) and isinstance(b, kinds)):
        return False
    return a.shape == b.shape and a.dtype == b.dtype


def _index_array(part: Any, beside: Any) -> Tensor:
    sequence = isinstance(part, (list, tuple, range))
    if not sequence and not isinstance(part, (Tensor, Variable, np.ndarray, np.generic, bool)):
        raise IndexError(
            "getitem: an index must be an integer, a slice, ..., None, or an integer or boolean "
            f"array; got {type(part).__name__}"
        )
    try:
        if sequence and made_of_python_numbers(list(part)):  # copied once, to where it is used
            array = Tensor(host_array(list(part)))
        else:
            array = as_tensor(list(part) if sequence else part)
    except TypeError as error:
        raise IndexError(
            f"getitem: an index array must hold integers or booleans: {error}"
        ) from None
    if sequence and 0 in (array.shape or ()):
        array = Tensor(np.zeros(array.shape, np.int64))  # an empty list has no dtype of its own
    like = of_backend(beside)
    loose = sequence or isinstance(part, bool)
    if loose and not is_transformed(like) and not is_transformed(array.array):
        # a sequence has no backend of its own, so it goes to that of the indexed array
        owner = backend_of(like)
        array = Tensor(owner.asarray(to_numpy(array.array), device=owner.device(like)))
    if array.dtype.kind not in "biu":
        raise IndexError(
            f"getitem: an index array must hold integers or booleans, got dtype {array.dtype}"
        )
    return array


@lru_cache(maxsize=1024)
def _static_index(template: tuple[Any, ...]) -> tuple[Any, ...] | None:
    return None if _uses_arrays(template) else tuple(_part(part, ()) for part in template)


def _uses_arrays(template: tuple[Any, ...]) -> bool:
    return any(isinstance(part, tuple) and part[0] == "array" for part in template)


def decode_index(template: tuple[Any, ...], arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the index for a kernel, built from an op's ``index`` parameter and array inputs.

    Parameters
    ----------
    template
        The op's parameter: integers, slices as tuples, and the positions of arrays.
    arrays
        The op's arrays of indices or booleans, in order.

    Returns
    -------
    tuple
        An index for NumPy.

    Examples
    --------
    >>> from gradtape.core.extend import decode_index
    >>> decode_index((("slice", 1, None, None), 0), ())
    (slice(1, None, None), 0)
    """
    if not arrays:
        static = _static_index(template)
        if static is not None:
            return static
    return tuple(_part(part, arrays) for part in template)


def _part(part: Any, arrays: tuple[Any, ...]) -> Any:
    if part == "newaxis":
        return None
    if part == "...":
        return Ellipsis
    if isinstance(part, int):
        return part
    if part[0] == "slice":
        return slice(*part[1:])
    return arrays[part[1]]
