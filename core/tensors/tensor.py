"""``Tensor``: a thin, immutable handle around one array of any type."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.array_types import BINARY, COMPARISONS, UNARY, ArrayHandle
from ..base.context import active_tapes
from ..base.dtypes import DTYPES, numpy_dtype
from ..base.sizes import is_open
from ..base.table import above, lazy_module, ops, services
from ..base.user_code import (
    computes_with_arrays,
    is_users_call,
    not_known,
    reader,
    refuse_to_assign,
    site_of,
)
from ..ops.dispatch import backend_of, place_of, to_numpy
from .data_frames import NotNumbers
from .methods import Methods, named_for_users
from .notebooks import table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .indexing import At

#: Why a gradient ends at a tensor whose value was read.
TO_NUMPY = (
    "a value that depends on it was read with .numpy(), float() or np.asarray(), and what NumPy or "
    "Python computes from it is a constant for the tape (NumPy also reads a list of tensors this "
    "way: combine them with gradtape.stack first)"
)
#: Why a gradient ends at a tensor that was exported to another library.
TO_DLPACK = (
    "a value that depends on it was exported to another library by __dlpack__ (from_dlpack), and "
    "what that library computes from it is a constant for the tape"
)
#: DLPack's number of the kind of device that is host memory.
_HOST = 1


class Operators(Methods):
    """Python's operators, one op each, and NumPy's protocols; for tensors and variables."""

    __slots__ = ()
    # Binary operators between an ndarray and a tensor call the tensor's methods, on either side.
    __array_priority__ = 1000

    if TYPE_CHECKING:
        # defined from the table of operators, below
        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __floordiv__(self, other: Any) -> Tensor: ...
        def __rfloordiv__(self, other: Any) -> Tensor: ...
        def __mod__(self, other: Any) -> Tensor: ...
        def __rmod__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __rpow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __rmatmul__(self, other: Any) -> Tensor: ...
        def __and__(self, other: Any) -> Tensor: ...
        def __rand__(self, other: Any) -> Tensor: ...
        def __or__(self, other: Any) -> Tensor: ...
        def __ror__(self, other: Any) -> Tensor: ...
        def __xor__(self, other: Any) -> Tensor: ...
        def __rxor__(self, other: Any) -> Tensor: ...
        def __lshift__(self, other: Any) -> Tensor: ...
        def __rlshift__(self, other: Any) -> Tensor: ...
        def __rshift__(self, other: Any) -> Tensor: ...
        def __rrshift__(self, other: Any) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __pos__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        # set by core.tensors, once the modules that they are built on are imported
        @property
        def at(self) -> At: ...
        def __getitem__(self, index: Any) -> Tensor: ...
        def __array_namespace__(self, *, api_version: str | None = None) -> Any: ...

    def _read(self) -> Tensor:
        """Return the value as a tensor; this watches a variable."""
        raise NotImplementedError

    def to_device(self, device: str, /, *, stream: Any = None) -> Tensor:
        """Return the tensor on a device, as :meth:`to` does, under the array API standard's name.

        Parameters
        ----------
        device
            A device as ``tensor.device`` names it, such as ``"numpy:cpu"`` or ``"cupy:0"``.
        stream
            Only None: copies are on the device's current stream.

        Returns
        -------
        Tensor
            A tensor with the same value, which gradients reach; the tensor itself if it is there.

        Raises
        ------
        LookupError
            If no plugin provides the backend.
        BackendUnavailable
            If the backend cannot be used here.
        ValueError
            If a stream is given.
        """
        if stream is not None:
            raise ValueError(f"to_device: stream must be None, got {stream!r:.80}")
        return self._read().to(device)

    def __divmod__(self, other: Any) -> tuple[Tensor, Tensor]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Tensor, Tensor]:
        return other // self, other % self

    def _is_text(self, other: str | bytes | None) -> Any:
        """Return whether each element of an array of text is ``other``; numbers are not text."""
        held: Any = self
        if other is None or held.dtype.kind != "O":
            return False
        text = other.encode() if isinstance(other, str) else other
        return Tensor(np.asarray(held.array == text))

    def __eq__(self, other: object) -> Any:
        if other is None or isinstance(other, (str, bytes)):
            return self._is_text(other)
        return _equal(self, other)

    def __ne__(self, other: object) -> Any:
        if other is None or isinstance(other, (str, bytes)):
            found = self._is_text(other)
            return not found if found is False else ops["logical_not"](found)
        return _not_equal(self, other)

    # Comparison is elementwise, so sets and dictionaries use the identity.
    __hash__ = object.__hash__

    def __contains__(self, item: object) -> bool:
        found = self == item
        return found if isinstance(found, bool) else bool(ops["any"](found, axis=None))


def _unary(op: str) -> Callable[[Any], Any]:
    return lambda self: ops[op](self)


def _binary(op: str, reflected: str) -> Callable[[Any, Any], Any]:
    """Return the method of an operator; ``reflected`` is that of the other operand."""

    def method(self: Any, other: Any) -> Any:
        try:
            return ops[op](self, other)
        except NotNumbers as error:
            # pytest.approx, a sparse matrix, a symbol: the other may know what to do with a tensor
            theirs = getattr(type(other), reflected, None)
            if theirs is None or isinstance(other, (Operators, np.ndarray, str, bytes)):
                raise
            try:
                result = theirs(other, self)
            except (AttributeError, TypeError) as second:
                raise error from second
            if result is NotImplemented:
                raise
            return result

    return method


def _reflected(op: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: ops[op](other, self)


def _power(self: Any, other: Any, modulus: Any = None) -> Any:
    if modulus is not None:
        raise TypeError(
            "pow(x, y, modulus) has no form for tensors; write x**y % modulus if the power does "
            "not overflow its dtype, or pass Python integers"
        )
    # like NumPy's operator, where x ** 2 of booleans has another dtype than power(x, 2)
    return ops["square"](self) if type(other) is int and other == 2 else _to_power(self, other)


for _name, _op in UNARY.items():
    setattr(Operators, f"__{_name}__", _unary(_op))
for _name, _op in BINARY.items():
    setattr(Operators, f"__{_name}__", _binary(_op, f"__r{_name}__"))
    setattr(Operators, f"__r{_name}__", _reflected(_op))
_to_power = _binary("power", "__rpow__")
Operators.__pow__ = _power  # type: ignore[method-assign]
for _name, _swapped in {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}.items():
    setattr(Operators, f"__{_name}__", _binary(COMPARISONS[_name], f"__{_swapped}__"))
_equal, _not_equal = _binary("equal", "__eq__"), _binary("not_equal", "__ne__")
named_for_users(Operators)


class Tensor(ArrayHandle, Operators):
    """A multi-dimensional array that gradient tapes can follow.

    A tensor never changes: ops return new ones. Create tensors with :func:`gradtape.constant`.

    Parameters
    ----------
    array
        An array of a backend. It is not copied, so it must not be written to any more.

    Attributes
    ----------
    array
        The wrapped array: ``numpy.ndarray``, ``cupy.ndarray``, or one of gradtape's own array types
        while a function is traced or transformed.

    Examples
    --------
    >>> x = gt.constant([1.0, 2.0])
    >>> (2.0 * x + 1.0).tolist()
    [3.0, 5.0]
    """

    __slots__ = ()

    def _read(self) -> Tensor:
        return self

    @property
    def value(self) -> Tensor:
        """The tensor itself, so that a layer may have a tensor instead of a variable."""
        return self

    @property
    def shape(self) -> tuple[Any, ...] | Any:  # None is too rare for every program to check it
        """The shape; unknown sizes are expressions in a trace, and an unknown rank is an error."""
        shape: tuple[Any, ...] | None = self.array.shape
        if shape is None and is_users_call():  # None == None would mean that two shapes are equal
            raise not_known(self.array, "shape (its rank is unknown: give its TensorSpec a rank)")
        return shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        shape = self.array.shape
        if shape is None:
            raise not_known(self.array, "ndim")
        return len(shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        shape = self.array.shape
        if shape is None:
            raise not_known(self.array, "size")
        return prod(shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype."""
        dtype = self.array.dtype
        return dtype if type(dtype) in DTYPES else numpy_dtype(dtype)

    @property
    def device(self) -> str:
        """The backend and device of the elements, for instance ``"numpy:cpu"`` or ``"cupy:0"``.

        It is ``"traced"`` in a trace, which runs where its inputs are.
        """
        return place_of(self.array)

    def numpy(self) -> NDArray[Any] | Any:
        """Return the value as a NumPy array (a NumPy scalar if there are no axes).

        The array shares memory with the tensor if possible, and is read-only, because a tape may
        hold the tensor. Copy it to write to it.

        Returns
        -------
        numpy.ndarray or numpy.generic
            The value, of the tensor's shape and dtype. Gradients do not pass through it.

        Raises
        ------
        TraceError
            While a function is traced or transformed, when there is no value.
        """
        value = to_numpy(self.array)
        for tape in active_tapes.get():  # so that it can explain a missing gradient
            tape.record_break((self,), (), TO_NUMPY)
        return _read_only(value)

    def _leave(self, method: str, held: bool = False) -> NDArray[Any] | Any:
        """Return the value as :meth:`numpy` does, and tell the tapes that ``method`` reads it.

        ``held`` says that it is the value of a trainable variable.
        """
        value = to_numpy(self.array)
        active = active_tapes.get()
        tapes = [t for t in active if held or self.id in t.records] if active else ()
        if tapes and self.dtype.kind in "fc":
            refuse_to_assign(tapes)
            site, whole = site_of(method), method == "int"
            for tape in tapes:
                if site is None:
                    tape.record_break((self,), (), TO_NUMPY)
                else:
                    tape.record_read(self, *site, np.trunc(value) if whole else value, held)
        return _read_only(value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        active = active_tapes.get()
        if dtype is None and active and any(self.id in tape.records for tape in active):
            objects: NDArray[Any] | None = lazy_module("core.tensors.numpy_functions").kept(self)
            if objects is not None:
                return objects
        # without a tape, no one needs to know
        leaving = self._leave("__array__") if active else _read_only(to_numpy(self.array))
        value = np.asarray(leaving)
        if dtype is not None and value.dtype != dtype:
            if copy is False:
                raise ValueError(
                    f"a {value.dtype} tensor cannot become dtype {dtype} without a copy; leave out "
                    "copy=False"
                )
            return value.astype(dtype)
        # a library's code may write to it, and its compiled code to read-only arrays too
        if copy or (copy is None and computes_with_arrays(reader())):
            return value.copy()
        return value

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return a DLPack capsule of the value: a copy, which the other library may write to.

        Parameters
        ----------
        stream
            The consumer's stream, for the backend's library; None on the host.
        max_version
            The highest version of DLPack that the consumer supports.
        dl_device
            The device of the copy, as DLPack numbers them; by default the tensor's.
        copy
            False exports the tensor's own memory, marked as read-only. The other library must
            support DLPack 1.0 (``max_version``) and respect the mark: NumPy does, but PyTorch 2
            writes anyway. If you never write to it, you can also export the raw ``x.array``.

        Raises
        ------
        BufferError
            If a copy is forbidden and memory cannot be marked as read-only: for an older library,
            or on a device.
        """
        if not _is_exportable(self.array):
            raise not_known(self.array, "a tensor's value")
        for tape in active_tapes.get():
            tape.record_break((self,), (), TO_DLPACK)
        if _on_host(self):
            self._leave("__dlpack__")
        given = {"stream": stream, "max_version": max_version, "dl_device": dl_device}
        options = {name: value for name, value in given.items() if value is not None}
        if copy is not False:
            if dl_device is not None and int(dl_device[0]) == _HOST:
                return np.array(to_numpy(self.array)).__dlpack__(**options)
            owner = backend_of(self.array)
            own = owner.asarray(self.array, device=owner.device(self.array))
            return own.__dlpack__(**options)
        if not _on_host(self) or (max_version or (0,)) < (1,):
            raise BufferError(
                "__dlpack__: a tensor never changes, and this export cannot mark its memory as "
                "read-only; leave out copy=False to get a copy"
            )
        view = np.asarray(self.array).view()
        view.flags.writeable = False
        return view.__dlpack__(copy=False, **options)

    def __dlpack_device__(self) -> Any:
        if not _is_exportable(self.array):
            raise not_known(self.array, "a tensor's device")
        return (_HOST, 0) if _on_host(self) else self.array.__dlpack_device__()

    if TYPE_CHECKING:  # bound by core.tensors

        def to(self, backend: str) -> Tensor: ...

    def item(self, *index: Any) -> Any:
        """Return the only element, or the one at ``index``, as a Python number.

        Parameters
        ----------
        index
            An integer (into the flattened tensor) or one for each axis, as in NumPy.

        Returns
        -------
        bool, int, float or complex
            The element. Gradients do not pass through it.

        Raises
        ------
        ValueError
            If there are several elements and no index is given.
        IndexError
            If the index is out of bounds.
        TraceError
            While a function is traced or transformed, when there is no value.
        """
        try:
            result: bool | int | float | complex = np.asarray(self._leave("item")).item(*index)
        except (IndexError, ValueError) as error:
            raise type(error)(f"item: {error}") from None
        return result

    def tolist(self) -> Any:
        """Return the value as nested lists of Python numbers.

        Returns
        -------
        list or number
            A list per axis; a number if there are no axes.
        """
        return np.asarray(self._leave("tolist")).tolist()

    def __float__(self) -> float:
        return float(_real(self, "float")._leave("float"))

    def __int__(self) -> int:
        return int(_real(self, "int")._leave("int"))

    def __trunc__(self) -> int:
        return int(self)

    def __floor__(self) -> int:
        return _whole(self, math.floor)

    def __ceil__(self) -> int:
        return _whole(self, math.ceil)

    def __complex__(self) -> complex:
        return complex(self._leave("complex"))

    def __bool__(self) -> bool:
        return bool(self.numpy())

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise TypeError(
                f"only an integer tensor can be an index, this one is {self.dtype}; cast it with "
                "x.astype('int64'), or pass x.item() to a function that takes another number"
            )
        return int(self.numpy())

    def __len__(self) -> int:
        shape = self.array.shape
        if shape is None or (shape and is_open(shape[0])):
            raise not_known(self.array, "len() (in a trace, use x.shape[0])")
        if not shape:
            raise TypeError("len() of a tensor without axes; its number of elements is x.size")
        return int(shape[0])

    def __iter__(self) -> Iterator[Tensor]:
        shape = self.array.shape
        if shape is not None and not shape:
            raise TypeError("iteration over a tensor without axes; its only element is x.item()")
        return self._items()

    def _items(self) -> Iterator[Tensor]:
        # an unknown size raises at the first step: NumPy, which iterates over its arguments, would
        # replace an earlier error by one of its own
        shape = self.array.shape
        if shape is None or is_open(shape[0]):
            rows = "the number of rows to iterate over (use gradtape.scan, map or vmap)"
            raise not_known(self.array, rows)
        for i in range(shape[0]):
            yield self[i]

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        if self.array.shape == ():
            return format(self.numpy().item(), spec)
        raise TypeError(
            f"the format {spec!r} is for a number, and this tensor has shape {self.array.shape}; "
            "format x[i], or np.array2string(x, precision=3)"
        )

    def __copy__(self) -> Tensor:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        return self  # immutable; tapes would not know a copy

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        reduced: tuple[Any, ...] = services["saving.pickle_tensor"](self, protocol)
        return reduced

    def __repr__(self) -> str:
        if not hasattr(self.array, "__array__") and not hasattr(self.array, "get"):
            return f"<Tensor {self.array!r}>"
        shape, dtype = tuple(self.array.shape), self.dtype
        value = np.array2string(np.asarray(self.numpy()), separator=", ", threshold=100)
        return f"<Tensor shape={shape} dtype={dtype} value={_indent(value)}>"

    def _repr_html_(self) -> str:
        if not hasattr(self.array, "__array__") and not hasattr(self.array, "get"):
            return table(repr(self))
        shape = tuple(self.array.shape)
        return table(f"Tensor shape={shape} dtype={self.dtype}", np.asarray(self.numpy()))

    def __str__(self) -> str:
        if not hasattr(self.array, "__array__") and not hasattr(self.array, "get"):
            return repr(self)
        return f"Tensor({self.numpy()!s}, shape={tuple(self.array.shape)}, dtype={self.dtype})"


def _read_only(value: Any) -> Any:
    if not value.shape:
        return value[()]
    view = value.view()
    view.flags.writeable = False
    return view


def _real(tensor: Tensor, to: str) -> Tensor:
    """Return a real tensor; raise for a complex one, whose imaginary part NumPy would drop."""
    if tensor.dtype.kind == "c":
        raise TypeError(
            f"{to}: a {tensor.dtype} tensor is not a real number; take its .real or abs()"
        )
    return tensor


def _whole(tensor: Tensor, function: Callable[[Any], int]) -> int:
    """Return a number rounded by a function of ``math``, exactly for large integers."""
    return function(_real(tensor, function.__name__)._leave("int").item())


def _is_exportable(array: Any) -> bool:
    """Return whether an array can be exported; NumPy's scalars, the results of sums, can."""
    return hasattr(array, "__dlpack__") or isinstance(array, np.generic)


def _on_host(tensor: Tensor) -> bool:
    return isinstance(tensor.array, (np.ndarray, np.generic))


def _indent(text: str) -> str:
    return "\n" + text if "\n" in text else text


def is_raw(gradients: Sequence[Any]) -> bool:
    """Return whether gradients are arrays and not tensors; None may be among either."""
    return Tensor not in map(type, gradients)


def arrays_of(values: Sequence[Any]) -> tuple[Any, ...]:
    """Return the arrays of tensors, and anything else unchanged."""
    return tuple([x.array if type(x) is Tensor else x for x in values])


above.Tensor = Tensor
