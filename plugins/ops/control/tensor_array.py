"""``TensorArray``: tensors by index, written one at a time, also in loops of a trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ....core.errors import TraceError
from ....core.extend import (
    Graph,
    Symbol,
    Tensor,
    TensorSpec,
    active_graph,
    as_dtype,
    as_size,
    as_tensor,
    flatten,
    has_unknown_sizes,
    known_size,
    largest,
    pack_like,
    tracing_into,
)
from ..indexing.take import take
from ..shapes.creation import zeros
from ..shapes.joining import concatenate, stack
from ..shapes.reshaping import expand_dims
from ..shapes.splitting import split, unstack


class KnownElements:
    """The tensors of an array whose indices are known: they are held one by one."""

    def __init__(self, size: Any, dtype: Any, shape: Any) -> None:
        self.size, self.dtype, self.shape = size, dtype, shape
        self.held: dict[int, Tensor] = {}

    def count(self) -> Any:
        """Return the number of tensors."""
        written = max(self.held, default=-1) + 1
        return max(self.size, written) if known_size(self.size) else self.size

    def copy(self) -> KnownElements:
        """Return a copy, so that writes to it do not change this one."""
        twin = KnownElements(self.size, self.dtype, self.shape)
        twin.held = dict(self.held)
        return twin

    def as_memory(self, shape: Any) -> Tensor:
        """Return all of them as one tensor, with zeros where none was written."""
        memory = zeros((self.count(), *shape), self.dtype)
        for i, x in self.held.items():
            memory = memory.at[i].set(x)
        return memory


class TensorArray(tuple[Any, ...]):
    """Tensors by index, which are written one at a time and become one tensor.

    If indices are known, the array holds the written tensors themselves, so gradients reach them. A
    loop of a trace (:func:`gradtape.while_loop`, :func:`gradtape.scan`) takes the array as a loop
    variable, and keeps it as one tensor.

    Parameters
    ----------
    dtype
        The dtype of the tensors.
    size
        The number of tensors; 0 by default.
    dynamic_size
        Whether the array grows when a higher index is written; by default only without ``size``.
    element_shape
        The shape of a tensor, if all have the same shape. A loop of a trace uses the shape of the
        tensors written.

    Attributes
    ----------
    dtype : numpy.dtype
        The dtype of the tensors.
    dynamic_size : bool
        Whether the array grows.

    Raises
    ------
    IndexError
        If an index is out of bounds, or a tensor is read that was not written.

    Examples
    --------
    >>> squares = gt.TensorArray("float32", size=3)
    >>> for i in range(3):
    ...     squares = squares.write(i, i * i)
    >>> squares.stack().tolist()
    [0.0, 1.0, 4.0]
    >>> def step(i, array):
    ...     return i + 1, array.write(i, gt.cast(i, "float32"))
    >>> @gt.function
    ... def numbers(n):
    ...     array = gt.TensorArray("float32", size=n)
    ...     return gt.while_loop(lambda i, _: i < n, step, (0, array))[1].stack()
    >>> numbers(gt.constant(4)).tolist()
    [0.0, 1.0, 2.0, 3.0]
    """

    __slots__ = ()
    #: It is a container of its cells, as a named tuple is.
    _fields: ClassVar[tuple[str, ...]] = ("held",)
    dynamic_size: ClassVar[bool] = False

    def __new__(
        cls,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        element_shape: Any = None,
    ) -> Any:
        """Make an array, or one with the cells of another, as loops do."""
        if isinstance(dtype, (Tensor, KnownElements)) or dtype is None:
            return super().__new__(cls, (dtype,))
        grows = size is None if dynamic_size is None else dynamic_size
        shape = None if element_shape is None else tuple(element_shape)
        count = as_size(0 if size is None else size, "TensorArray: size")
        cells = KnownElements(count, as_dtype(dtype), shape)
        return super().__new__(_Growing if grows else TensorArray, (cells,))

    @property
    def _held(self) -> Any:
        return self[0]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the tensors."""
        dtype: np.dtype[Any] = self._held.dtype
        return dtype

    @property
    def element_shape(self) -> Any:
        """The shape of a tensor; ``None`` if it is unknown."""
        held = self._held
        if isinstance(held, Tensor):
            return held.shape[1:]
        return next((x.shape for x in held.held.values()), held.shape)

    def size(self) -> Any:
        """Return the number of tensors, as a tensor."""
        held = self._held
        count = held.shape[0] if isinstance(held, Tensor) else held.count()
        return as_tensor(count, "int32")

    def write(self, index: Any, value: Any) -> TensorArray:
        """Return the array with a tensor written; do not use the old array any more.

        Parameters
        ----------
        index
            Its index.
        value
            The tensor.
        """
        held, x = self._held, as_tensor(value)
        if x.dtype != self.dtype:
            weak = not hasattr(value, "dtype")
            if not weak:
                raise TypeError(
                    f"TensorArray: cannot write {x.dtype} to an array of {self.dtype}; cast it"
                )
            x = as_tensor(value, self.dtype)
        place = as_tensor(index)
        if type(place.array) is not Symbol and isinstance(held, KnownElements):
            i = place.item()
            if i < 0 or (not self.dynamic_size and known_size(held.size) and i >= held.size):
                raise IndexError(f"TensorArray: index {i} is out of bounds for size {held.size}")
            held.held[i] = x
            return self
        memory = held if isinstance(held, Tensor) else held.as_memory(x.shape)
        if not self.dynamic_size:
            return type(self)(memory.at[place].set(x))
        i = as_size(place, "TensorArray: index")
        missing = zeros((largest(i - memory.shape[0], 0), *memory.shape[1:]), memory.dtype)
        return type(self)(concatenate([memory[:i], missing, expand_dims(x, 0), memory[i + 1 :]]))

    def read(self, index: Any) -> Tensor:
        """Return a tensor by its index.

        Parameters
        ----------
        index
            The index.
        """
        held, place = self._held, as_tensor(index)
        if isinstance(held, Tensor):
            return held[place]
        if type(place.array) is Symbol:
            return self.stack()[place]
        i = place.item()
        if i in held.held:
            return held.held[i]
        if held.shape is not None and known_size(held.size) and i < held.size:
            return zeros(held.shape, held.dtype)
        raise IndexError(f"TensorArray: index {i} was not written")

    def stack(self) -> Tensor:
        """Return all tensors as one, along a new first axis."""
        held = self._held
        if isinstance(held, Tensor):
            return held
        shape = self.element_shape
        count = held.count()
        if known_size(count) and count and len(held.held) == count:
            return stack([held.held[i] for i in range(count)])
        if shape is None:
            if known_size(count) and not count:
                return zeros((0,), held.dtype)
            raise ValueError(
                "TensorArray: nothing was written, so its shape is unknown; give element_shape"
            )
        return held.as_memory(shape)

    def gather(self, indices: Any) -> Tensor:
        """Return some of the tensors as one.

        Parameters
        ----------
        indices
            Their indices.
        """
        return take(self.stack(), as_tensor(indices), 0)

    def concat(self) -> Tensor:
        """Return all tensors, concatenated along their first axis."""
        held = self._held
        parts = (
            unstack(held) if isinstance(held, Tensor) else [held.held[i] for i in sorted(held.held)]
        )
        return concatenate(list(parts))

    def unstack(self, value: Any) -> TensorArray:
        """Return the array with the slices of a tensor written.

        Parameters
        ----------
        value
            A tensor with the slices along its first axis.
        """
        return type(self)(as_tensor(value).astype(self.dtype))

    def scatter(self, indices: Any, value: Any) -> TensorArray:
        """Return the array with the slices of a tensor written at indices.

        Parameters
        ----------
        indices
            The indices.
        value
            A tensor with a slice for each index.
        """
        array = self
        for i, x in zip(as_tensor(indices), unstack(as_tensor(value))):
            array = array.write(i, x)
        return array

    def split(self, value: Any, lengths: Any) -> TensorArray:
        """Return the array with parts of a tensor written.

        Parameters
        ----------
        value
            A tensor.
        lengths
            The size of each part along the first axis.
        """
        ends = np.cumsum(np.asarray(lengths))[:-1].tolist()
        array = self
        for i, x in enumerate(split(as_tensor(value), ends)):
            array = array.write(i, x)
        return array

    def __repr__(self) -> str:
        return f"<TensorArray of {self.dtype} tensors of shape {self.element_shape}>"

    def __len__(self) -> int:
        return 1  # its length as a container


class _Growing(TensorArray):
    __slots__ = ()
    dynamic_size = True


def with_memory(body: Callable[..., Any], loop_vars: Any) -> Any:
    """Return the variables of a loop in a trace, with each array among them as one tensor.

    The shape of the tensors written comes from tracing a first step.
    """
    leaves = flatten(loop_vars)
    if not any(type(x) is KnownElements for x in leaves):
        return loop_vars
    graph = Graph("a step", active_graph.get())
    with tracing_into(graph):
        given: list[Any] = []
        for x in leaves:
            if type(x) is KnownElements:
                given.append(x.copy())
            else:
                x = as_tensor(x)
                given.append(Tensor(graph.input(TensorSpec(x.shape, x.dtype))))
        packed = pack_like(loop_vars, given)
        spread = isinstance(loop_vars, (list, tuple)) and not hasattr(loop_vars, "_fields")
        after = flatten(body(*packed) if spread else body(packed))
    for i, (cells, x) in enumerate(zip(leaves, after)):
        if type(cells) is not KnownElements:
            continue
        shape = (
            x.shape[1:]
            if isinstance(x, Tensor)
            else next((y.shape for y in x.held.values()), cells.shape)
        )
        if shape is None:  # nothing is written
            shape = ()
        if has_unknown_sizes(shape):
            raise TraceError(
                f"TensorArray: a loop writes tensors of shape {shape}, whose sizes the trace does "
                "not know; give it element_shape"
            )
        leaves[i] = cells.as_memory(shape)
    return pack_like(loop_vars, leaves)
