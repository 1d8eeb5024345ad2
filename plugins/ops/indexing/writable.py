"""``writable``: arrays for other libraries' code that assigns to elements.

A ``WritableArray`` holds a tensor, and ``x[index] = values`` makes it hold another one. As in
NumPy, a slice of it or another shape is a view: what is written to one of them changes all. A view
knows the positions of its elements in the base. NumPy's function of the same name finds them, when
something is first written.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial, wraps
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from ....core.extend import (
    BINARY,
    COMPARISONS,
    UNARY,
    Op,
    Operators,
    Tensor,
    ValueHolder,
    active_graph,
    active_tapes,
    as_tensor,
    flatten,
    is_open,
    is_transformed,
    map_structure,
    public_package,
    same_shape,
)

#: The functions, methods and attributes whose results are views in NumPy, if it need not copy.
_VIEWS = frozenset(
    "T array_split broadcast_to diagonal dsplit expand_dims flip fliplr flipud hsplit mT "
    "matrix_transpose moveaxis permute_dims ravel reshape rollaxis rot90 split squeeze swapaxes "
    "transpose unstack vsplit".split()
)
#: Those that return a view of each of their arguments.
_VIEWS_OF_EACH = frozenset("atleast_1d atleast_2d atleast_3d broadcast_arrays".split())
#: The indices of which NumPy copies the elements.
_COPYING = (bool, list, np.bool_, np.ndarray, Operators)
#: Modules that search by comparing values. Their steps differ from the result by less than a
#: tolerance, but the derivatives of the steps may be any.
_SEARCHES = frozenset({"scipy.optimize._bracket", "scipy.optimize._chandrupatla"})


class WritableArray(ValueHolder):
    """A tensor in a place where libraries may write: see :func:`gradtape.writable`."""

    __slots__ = ("__weakref__", "_base", "_held", "_locate", "_seen")

    _by_value = True

    if TYPE_CHECKING:  # the tensor's, from the loops below

        @property
        def device(self) -> str: ...
        @property
        def dtype(self) -> np.dtype[Any]: ...
        @property
        def ndim(self) -> int: ...
        @property
        def shape(self) -> tuple[Any, ...]: ...
        @property
        def size(self) -> int: ...

    def __init__(self, held: Tensor, base: WritableArray | None = None, locate: Any = None) -> None:
        self._held = held
        #: The array that this is a view of, or perhaps a copy: ``locate`` knows.
        self._base = base
        #: The positions of the elements in the base, or a function that returns them, or None if
        #: they were copied.
        self._locate = locate
        #: What the base held when this view was last read, and the trace that read it.
        self._seen = None if base is None else (base._held, active_graph.get())

    def _positions(self) -> Any:
        """Return the positions of the elements in the array that holds them."""
        if callable(self._locate):
            self._locate = self._locate()
            if self._locate is None:
                self._base = None
        if self._base is None:
            if is_open(self._held.size):
                raise TypeError(
                    f"a trace with sizes that are unknown, {self._held.shape}, cannot follow views "
                    "of a writable array: assign to the array itself, x[1, 2:] = values, or leave "
                    "out input_signature"
                )
            return np.arange(self._held.size).reshape(self._held.shape)
        return self._locate

    def _view(self, held: Tensor, of_numpy: Callable[[Any], Any]) -> WritableArray:
        """Return an array that is a view if NumPy's function returns one."""
        if self._base is not None:
            self._positions()  # it may be a copy, which has views of its own

        def locate() -> Any:
            mine = self._positions()
            found = of_numpy(mine)
            return found if np.shares_memory(found, mine) else None

        return WritableArray(held, self if self._base is None else self._base, locate)

    @property
    def value(self) -> Tensor:
        """The current value, as a tensor."""
        base = self._base
        if base is not None and not self._is_current(base._held):
            places = self._positions()
            if self._base is not None:  # it is no copy
                self._seen = base._held, active_graph.get()
                self._held = base._held.reshape(-1)[places]
        return self._held

    def _is_current(self, whole: Tensor) -> bool:
        """Return whether the elements were read from ``whole`` as the tapes and trace need it."""
        assert self._seen is not None
        held, (seen, graph) = self._held, self._seen
        if seen is not whole or (graph is not active_graph.get() and is_transformed(held.array)):
            return False
        tapes = active_tapes.get()
        return not any(whole.id in t.records and held.id not in t.records for t in tapes)

    @property
    def array(self) -> Any:
        """The raw array of the current value."""
        return self.value.array

    def _read(self) -> Tensor:
        return self.value

    def handle(self) -> Tensor:
        """Return the current value."""
        return self.value

    def _leaving(self, method: str) -> Tensor:
        return self.value

    def __getitem__(self, index: Any) -> Any:
        index = _tensors(index)
        part = self.value[index]
        if any(isinstance(x, _COPYING) for x in (index if type(index) is tuple else (index,))):
            return WritableArray(part)
        return self._view(part, lambda places: places[index])

    def __setitem__(self, index: Any, values: Any) -> None:
        _check_no_search(sys._getframe(1).f_globals.get("__name__", ""))
        index, values = _tensors(index), _tensors(values)
        places = self._positions() if self._base is not None else None
        base = self._base
        if base is None or places is None:
            self._held = self.value.at[index].set(values)
            return
        # of the same shape as the elements, so that the flattened values fit
        fitted = self.value.at[index].set(values).reshape(-1)
        if not places.flags.writeable:
            raise ValueError(
                "NumPy's broadcast_to and diagonal return read-only views: assign to the array "
                "itself, or to a copy, x.copy()"
            )
        base._held = (
            base._held.reshape(-1).at[places.reshape(-1)].set(fitted).reshape(base._held.shape)
        )

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    @property
    def flat(self) -> WritableArray:
        """All elements, in one axis: what is written to it changes the array."""
        whole = self if self._base is None else self._base
        return WritableArray(self.value.reshape(-1), whole, lambda: self._positions().reshape(-1))

    def fill(self, value: Any) -> None:  # type: ignore[override]
        """Assign a number to all elements."""
        self[...] = value

    def put(self, indices: Any, values: Any) -> None:  # type: ignore[override]
        """Assign to the elements at ``indices`` of the flattened array."""
        self.flat[indices] = values

    def sort(self, axis: int = -1) -> None:  # type: ignore[override]
        """Sort the array along an axis."""
        self[...] = public_package().sort(self.value, axis=axis)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "at" and type(inputs[0]) is WritableArray and ufunc.__name__ in _AT:
            x, index, values = inputs
            x[...] = getattr(x.value.at[_tensors(index)], ufunc.__name__)(_tensors(values))
            return None
        return _call(getattr(ufunc, method), inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        written = _WRITERS.get(func)
        if written is not None and args and type(args[0]) is WritableArray:
            given = _tensors((args, kwargs))
            args[0][...] = written(*given[0], **given[1])
            return None
        return _call(func, args, kwargs)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        self._held.__array_namespace__(api_version=api_version)  # raises for an unknown version
        return _NAMESPACE

    def __reduce__(self) -> Any:
        return WritableArray, (self.value,)  # as in NumPy, a copy of a view is no view

    def __repr__(self) -> str:
        return f"<WritableArray of {self.value!r}>"


def _property(name: str) -> Any:
    """Return an attribute of the tensor."""
    if name in ("real", "imag"):
        return property(lambda self: _part(self, name), partial(_set_part, name))
    if name not in _VIEWS:
        return property(lambda self: _writable(getattr(self.value, name)))
    return property(
        lambda self: self._view(getattr(self.value, name), lambda places: getattr(places, name))
    )


def _part(x: WritableArray, name: str) -> WritableArray:
    real = x.dtype.kind != "c" and name == "real"
    return x._view(getattr(x.value, name), (lambda places: places[...]) if real else _refuse_part)


def _set_part(name: str, x: WritableArray, values: Any) -> None:
    values, held = _tensors(values), x.value
    if held.dtype.kind != "c" and name == "imag":
        raise TypeError(f"an array of {held.dtype} has no imaginary part to assign to")
    if held.dtype.kind == "c":
        values = values + 1j * held.imag if name == "real" else held.real + 1j * values
    x[...] = values


def _refuse_part(places: Any) -> Any:
    raise TypeError(
        "elements of x.real and x.imag of a writable array cannot be assigned to, nor read after x "
        "changed: assign to x or to x.real as a whole, or take a copy, x.real.copy()"
    )


def _method(name: str) -> Any:
    """Return a method of the tensor whose results can be written to."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _call(getattr(Tensor, name), (self, *args), kwargs, f"ndarray.{name}")

    method.__name__, method.__qualname__ = name, f"WritableArray.{name}"
    return method


def _in_place(name: str) -> Any:
    """Return Python's in-place operator, which writes to the array."""

    def method(self: Any, other: Any) -> Any:
        result = getattr(self, name)(other)
        held = self._held
        same = result.dtype == held.dtype and same_shape(result.array.shape, held.array.shape)
        if same and self._base is None:
            self._held = result._held  # all elements change: nothing to copy
        else:
            self[...] = result
        return self

    return method


#: The methods of operators, whose results are never views.
_OPERATORS = {
    f"ndarray.__{x}__" for x in (*UNARY, *BINARY, *(f"r{x}" for x in BINARY), *COMPARISONS)
}
_OWN = vars(WritableArray).keys() | vars(ValueHolder).keys() | {"at"}
for _name in (*UNARY, *BINARY, *(f"r{x}" for x in BINARY), *COMPARISONS):
    setattr(WritableArray, f"__{_name}__", _method(f"__{_name}__"))
for _name in BINARY:
    setattr(WritableArray, f"__i{_name}__", _in_place(f"__{_name}__"))
for _name, _member in (pair for cls in Tensor.__mro__ for pair in vars(cls).items()):
    if _name[0] != "_" and _name not in _OWN and type(_member) in (FunctionType, property):
        setattr(WritableArray, _name, (_method if callable(_member) else _property)(_name))
WritableArray.__hash__ = object.__hash__  # type: ignore[assignment, method-assign]


def _check_no_search(module: str) -> None:
    if module in _SEARCHES and (active_tapes.get() or active_graph.get() is not None):
        raise TypeError(
            f"{module} compares values to find its result, and the derivatives of its steps are "
            "not those of the result: call it with arrays, x.numpy(), and take a step of Newton's "
            "method with tensors, which has the right gradient"
        )


def _copied(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> Any:
    return src if where is True else np.where(where, src, dst)


def _put(a: Any, ind: Any, v: Any, mode: str = "raise") -> Any:
    if mode != "raise":
        raise TypeError(f"numpy.put with mode={mode!r} does not work on writable arrays")
    return a.reshape(-1).at[ind].set(v).reshape(a.shape)


#: The functions of NumPy that write into their first argument: what is written.
_WRITERS: dict[Any, Callable[..., Any]] = {
    np.copyto: _copied,
    np.put: _put,
    np.fill_diagonal: lambda *x, **options: public_package().fill_diagonal(*x, **options),
    np.put_along_axis: lambda *x, **options: public_package().put_along_axis(*x, **options),
}
#: The ufuncs whose method ``at`` is one of ``x.at[index]``.
_AT = ("add", "subtract")


# -- calls -----------------------------------------------------------------------------------------


def _tensors(values: Any) -> Any:
    """Return values with a tensor for each writable array."""
    kind = type(values)
    if kind in _PLAIN:  # without the walk, which costs as much as an op
        return values
    if kind is tuple:
        return tuple([_tensors(x) for x in values])
    return values.value if kind is WritableArray else map_structure(_tensor, values)


def _tensor(x: Any) -> Any:
    return x.value if type(x) is WritableArray else x


#: Types of values that hold no writable array.
_PLAIN = frozenset({Tensor, np.ndarray, bool, int, float, complex, slice, str, type(None)})


def _writable(result: Any) -> Any:
    """Return a result with a writable array for each tensor."""
    if type(result) is Tensor:
        return WritableArray(result)
    return map_structure(lambda x: WritableArray(x) if type(x) is Tensor else x, result)


def _call(function: Any, args: Any, kwargs: Any, path: str = "") -> Any:
    """Call a function on tensors; results that are views of the first argument remain views."""
    if not kwargs and path in _OPERATORS:  # the usual case
        return _writable(function(*_tensors(args)))
    out = kwargs.get("out")
    out = out[0] if type(out) is tuple and len(out) == 1 else out
    if type(out) is WritableArray:
        given = _tensors((args, {k: v for k, v in kwargs.items() if k != "out"}))
        out[...] = _with_gradients(function, *given)
        return out
    given = _tensors((args, kwargs))
    result = function(*given[0], **given[1])
    first = args[0] if args else None
    name = getattr(function, "__name__", "")
    if name in _VIEWS_OF_EACH:
        results = (result,) if type(result) is Tensor else result
        views = tuple(map(partial(_one_of_each, name), args, results))
        return views[0] if type(result) is Tensor else views
    if type(first) is WritableArray:
        if name == "real" and first.dtype.kind != "c":
            return _part(first, name)
        same = name == "asarray" or (name == "astype" and kwargs.get("copy") is False)
        if same and (result is given[0][0] or (name == "astype" and result.dtype == first.dtype)):
            return first
        if name in _VIEWS:
            in_linalg = getattr(function, "__module__", "").endswith(".linalg")
            numpys: Any = np.linalg if in_linalg and hasattr(np.linalg, name) else np
            for part in (path or name).split("."):
                numpys = getattr(numpys, part)

            def of_numpy(places: Any) -> Any:
                return numpys(places, *given[0][1:], **given[1])

            def part(number: int) -> Callable[[Any], Any]:
                return lambda places: of_numpy(places)[number]

            if type(result) is Tensor:
                return first._view(result, of_numpy)
            return tuple(first._view(x, part(i)) for i, x in enumerate(result))
    return _writable(result)


def _with_gradients(function: Any, args: Any, kwargs: Any) -> Any:
    """Call a function of NumPy, also if it gets tensors only in lists, which it would read."""
    held = [x for x in flatten((args, kwargs)) if isinstance(x, Operators)]
    if not held or any(isinstance(x, Operators) for x in (*args, *kwargs.values())):
        return function(*args, **kwargs)
    ufunc = getattr(function, "__self__", None)
    if isinstance(ufunc, np.ufunc):
        return held[0].__array_ufunc__(ufunc, function.__name__, *args, **kwargs)
    return held[0].__array_function__(function, (Tensor,), args, kwargs)


def _one_of_each(name: str, x: Any, result: Tensor) -> WritableArray:
    """Return a result of a function that returns views of its arguments: that of ``x``."""
    if type(x) is not WritableArray:
        return WritableArray(result)
    other = np.broadcast_to(0, result.shape)
    return x._view(result, lambda places: getattr(np, name)(places, other)[0])


class _Namespace(ModuleType):
    """A module whose functions take writable arrays, and return them."""

    def __init__(self, module: Any) -> None:
        super().__init__(f"{module.__name__} (writable)")
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if isinstance(found, ModuleType):
            found = _Namespace(found)
        elif isinstance(found, (FunctionType, Op)):
            found = _function(found)
        setattr(self, name, found)
        return found


def _function(function: Any) -> Any:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return _call(function, args, kwargs)

    return call


_NAMESPACE = _Namespace(public_package())


def writable(x: Any) -> WritableArray:
    """Return a copy whose elements can be assigned to, with gradients.

    A tensor never changes, but NumPy scripts and libraries contain ``x[index] = values``. The
    result has NumPy's assignments, in-place operators and views, and follows the array API
    standard. ``x`` stays as it is, and gradients reach it. Functions that get such an array first
    return such arrays, which all of gradtape's functions accept. NumPy's ``copyto``,
    ``fill_diagonal``, ``put``, ``put_along_axis``, ``add.at`` and ``subtract.at`` write into such
    arrays. Results of ``einsum``, ``trim_zeros``, and ``real`` and ``imag`` of complex numbers, are
    always copies.

    Parameters
    ----------
    x
        A tensor, a variable, or anything that :func:`gradtape.constant` takes.

    Returns
    -------
    WritableArray
        An array of the shape and dtype of ``x``; its attribute ``value`` is a tensor.

    Raises
    ------
    TypeError
        If the value is not numeric.

    Examples
    --------
    >>> x = gt.constant([1.0, 2.0, 3.0])
    >>> with gt.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = gt.writable(x)
    ...     y[1:] *= 10.0
    ...     loss = gt.sum(y)
    >>> tape.gradient(loss, x).tolist()
    [1.0, 10.0, 10.0]
    """
    return WritableArray(as_tensor(x))
