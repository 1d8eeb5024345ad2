"""What kernels return, held to the op's record at their first run.

A tensor would hold a wrong result, and fail later, where nothing names the op; a compiled program
would broadcast it. A check takes as long as a small kernel, so only the first run is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.dtypes import SCALARS, numpy_dtype
from ..base.handle import Handle
from ..base.sizes import shapes_differ
from ..base.spec import describe
from ..errors import PluginError
from .backends.backend import Backend
from .backends.owners import backend_for_type
from .dispatch import transforms
from .record import inferred

if TYPE_CHECKING:
    from .primitive import Primitive


def checked_result(
    op: Primitive, backend: Backend, kernel: Callable[..., Any]
) -> Callable[..., Any]:
    """Return an op's kernel that raises if its result is not what the record says."""

    def run(*arrays: Any, **params: Any) -> Any:
        before = [np.array(x) if op.identity and type(x) is np.ndarray else x for x in arrays]
        result = kernel(*arrays, **params)
        parts = _parts(op, backend, result)
        _check_traits(op, before, arrays, parts)
        specs = _inferred(op, arrays, params)
        if specs is not None:
            check_specs(op, backend, parts, specs)
            op.held.add(backend.name)
        return result

    return run


class FirstRun:
    """A kernel in a compiled program, whose first results are compared with what a trace inferred.

    Parameters
    ----------
    op, backend
        The op and the backend.
    kernel
        A function of arrays.
    specs
        The inferred results: objects with ``shape`` and ``dtype``.
    """

    __slots__ = ("_backend", "_op", "_places", "_specs", "kernel")

    def __init__(
        self, op: Primitive, backend: Backend, kernel: Callable[..., Any], specs: Sequence[Any]
    ) -> None:
        self._op, self._backend, self._specs = op, backend, specs
        self._places: list[tuple[dict[str, Any], str]] = []
        self.kernel = kernel

    def stands_in(self, scope: dict[str, Any], name: str) -> None:
        """Note where code looks the kernel up: after the first run, it finds the kernel itself."""
        self._places.append((scope, name))

    def __call__(self, *arrays: Any) -> Any:
        """Run the kernel, and check its results."""
        result = self.kernel(*arrays)
        parts = _parts(self._op, self._backend, result)
        check_specs(self._op, self._backend, parts, [(x.shape, x.dtype) for x in self._specs])
        for scope, name in self._places:
            scope[name] = self.kernel
        return result


def check_specs(
    op: Primitive, backend: Backend, parts: Sequence[Any], specs: Sequence[tuple[Any, Any]]
) -> None:
    """Compare results with shapes and dtypes that the op's shape rule gave.

    Raises
    ------
    PluginError
        If they differ. The message names the op.
    """
    if len(parts) != len(specs):
        raise PluginError(
            f"op {op.name!r}: its shape rule (infer=) gives {len(specs)} results, but its kernel "
            f"for the backend {backend.name!r} returned {len(parts)}"
        )
    for part, (shape, dtype) in zip(parts, specs, strict=True):
        got = numpy_dtype(part.dtype)
        if shapes_differ(part.shape, shape) or got != np.dtype(dtype):
            raise PluginError(
                f"op {op.name!r}: its shape rule (infer=) gives {describe(shape, np.dtype(dtype))},"
                f" but its kernel for the backend {backend.name!r} returned "
                f"{describe(part.shape, got)}; traces rely on the rule, so correct one of them"
            )


def _parts(op: Primitive, backend: Backend, result: Any) -> list[Any]:
    """Return the results as a list of arrays of the backend; raise if they are something else."""
    several = type(result) in (tuple, list)
    parts = list(result) if several else [result]
    for part in parts:
        if not _is_array(part):
            told = "None (is a return missing?)" if result is None else f"{result!r:.80}"
            raise PluginError(
                f"op {op.name!r}: its kernel returned {told}, not "
                + ("several arrays, one for each output" if several else "an array of the backend")
            )
        try:
            owner = None if type(part) in transforms else backend_for_type(type(part), op.name)
        except TypeError:
            owner = None
        if owner is not backend:
            kind = f"{type(part).__module__}.{type(part).__qualname__}"
            whose = f"of the backend {owner.name!r}" if owner else "of no backend"
            raise PluginError(
                f"op {op.name!r}: its kernel for the backend {backend.name!r} returned {kind}, "
                f"{whose}; compute with the namespace that it receives first, or say host=True if "
                "it is for NumPy arrays only"
            )
    return parts


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, Handle)


def _check_traits(
    op: Primitive, before: Sequence[Any], arrays: Sequence[Any], parts: Sequence[Any]
) -> None:
    """Raise if NumPy's results show that ``identity`` or ``view=False`` does not hold."""
    first = before[0] if before else None
    if op.identity and type(first) is np.ndarray and type(parts[0]) is np.ndarray:
        same = first.dtype == parts[0].dtype and first.shape == parts[0].shape
        if not same or first.tobytes() != parts[0].tobytes():
            raise PluginError(
                f"op {op.name!r} is said to be an identity, but it changed its first input; leave "
                "out identity=True"
            )
    if op.view is False:
        for part in parts:
            if any(
                type(x) is type(part) is np.ndarray and np.may_share_memory(x, part) for x in arrays
            ):
                raise PluginError(
                    f"op {op.name!r} is said to return new arrays (view=False), but its result "
                    "shares memory with an input; leave out view=False"
                )


def _inferred(op: Primitive, arrays: Sequence[Any], params: Any) -> list[tuple[Any, Any]] | None:
    """Return what the shape rule says; None if there is none, or if it refuses."""
    sizes = [n for x in arrays if type(x) not in SCALARS for n in x.shape]
    if op.infer is None or op.effect or any(type(n) is not int for n in sizes):
        return None  # a compiler's symbols for sizes
    try:
        found = inferred(op, arrays, params)
    except Exception:  # it says so itself in a trace
        return None
    return found if isinstance(found, list) else [found]
