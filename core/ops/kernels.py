"""Kernels on host memory, watched kernels, and kernels whose results are checked.

Kernels on host memory are functions of NumPy arrays, for arrays of any backend. A watcher wraps
kernels while it is active, and at no other time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.array_types import ArrayHandle, describe
from ..base.dtypes import DTYPES, SCALARS, numpy_dtype
from ..base.observers import Watcher, watcher
from ..base.positions import NUMPY
from ..base.sizes import shapes_differ
from ..base.table import registry
from ..errors import PluginError
from .backend import Backend
from .dispatch import backend_for_type, transforms
from .rule import inferred
from .unchanged import Unchanged

if TYPE_CHECKING:
    from .primitive import Primitive

#: The bytes of the largest input that is copied, to see whether an identity changes it.
_COPIED = 1 << 20


def native_kernel(op: Primitive, backend: Backend) -> Callable[..., Any] | None:
    """Return the kernel that a backend itself has for an op whose own kernel is for the host."""
    return op.host(backend) if callable(op.host) else None


def runs_on_host(op: Primitive, backend: Backend) -> bool:
    """Return whether an op's own kernel copies a backend's arrays to host memory.

    Parameters
    ----------
    op
        An op. A kernel that a plugin provides for the backend is another matter.
    backend
        The backend.
    """
    return bool(op.host) and backend.xp is not NUMPY and native_kernel(op, backend) is None


def host_kernel(op: Primitive, backend: Backend) -> Callable[..., Any]:
    """Return the kernel of an op that computes on host memory, for arrays of a backend."""
    native = native_kernel(op, backend)

    def kernel(xp: Any, *arrays: Any, **params: Any) -> Any:
        if native is not None:
            return native(*arrays, **params)
        return _on_host(op, backend, arrays, params)

    bound: Callable[..., Any] = backend.bind(kernel)
    return bound


def _on_host(op: Primitive, backend: Backend, given: Any, params: dict[str, Any]) -> Any:
    """Call an op's kernel on copies of its arrays; numbers stay as they are."""
    run: Any = op.kernel
    found = inferred(op, given, params)
    several = isinstance(found, list)

    def function(*values: Any) -> tuple[Any, ...]:
        rest = iter(values)
        result = run(NUMPY, *[x if type(x) in SCALARS else next(rest) for x in given], **params)
        return tuple(map(np.asarray, result if type(result) in (tuple, list) else (result,)))

    arrays = [x for x in given if type(x) not in SCALARS]
    results = [(shape, np.dtype(dtype)) for shape, dtype in (found if several else [found])]
    parts = backend.on_host(function, arrays, results)
    return tuple(parts) if several else parts[0]


# -- watched kernels -------------------------------------------------------------------------------


_LOCK = Lock()
#: How many watchers there are, in all threads.
_watchers = 0


@contextmanager
def watching(who: Watcher) -> Iterator[None]:
    """Report the kernels that run in a block to a watcher.

    Ops cache their kernels, so this clears all caches before and after the block. Other threads get
    the same wrapped kernels, which find no watcher there and run as usual.
    """
    other = watcher.get()
    if other is not None and not other.over:
        raise RuntimeError(
            "gradtape.profile() is already active here, and profiles cannot be nested: the outer "
            "one measures this block too, and lists it by line and by layer"
        )
    _count(1)
    watcher.set(who)
    try:
        yield
    finally:
        watcher.set(None)
        _count(-1)


def _count(change: int) -> None:
    global _watchers
    with _LOCK:
        before = _watchers
        _watchers += change
        if not (before and _watchers):
            for op in registry().ops.values():
                op.forget_made()


def watched(op: Primitive, backend: Backend, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return the kernel that an op found, wrapped in a call of the watcher if there is one."""
    if not _watchers:
        return kernel
    telling = reporting_kernel(op.name, backend, kernel)

    def run(*arrays: Any, **params: Any) -> Any:
        if not _watchers:  # another thread found it just before the watcher ended
            op.forget_made()
        return telling(*arrays, **params)

    return run


def reporting_kernel(name: str, backend: Backend, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that reports to the watcher, if there is one when it runs."""

    def run(*arrays: Any, **params: Any) -> Any:
        who = watcher.get()
        if who is None:
            return kernel(*arrays, **params)
        return who.kernel(name, backend, kernel, arrays, params)

    return run


# -- what kernels return ---------------------------------------------------------------------------


# A tensor would hold a wrong result, and fail later, where nothing names the op; a compiled program
# would broadcast it. A check takes as long as a small kernel, so only the first run is checked.


def checked_result(
    op: Primitive, backend: Backend, kernel: Callable[..., Any]
) -> Callable[..., Any]:
    """Return an op's kernel that raises if its result is not what the record says."""

    def run(*arrays: Any, **params: Any) -> Any:
        before = None if _is_verified(op, backend) else Unchanged(arrays)
        first = np.array(arrays[0]) if op.identity and _is_small(arrays[0]) else None
        result = kernel(*arrays, **params)
        try:
            parts = _parts(op, backend, result)
            _check_inputs(op, before)
            _check_traits(op, first, arrays, parts)
            found = _inferred(op, arrays, params)
            if found is not None:
                specs = found if isinstance(found, list) else [found]
                check_specs(op, backend, parts, specs)
                _check_several(op, isinstance(found, list), result)
                op.held.add(backend.name)
        except PluginError:
            op.forget_made()  # so that the next call is compared, too
            raise
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

    def note_lookup(self, scope: dict[str, Any], name: str) -> None:
        """Note where code looks the kernel up: after the first run, it finds the kernel itself."""
        self._places.append((scope, name))

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        """Run the kernel, and check its results; a correct one is copied to ``out``."""
        verified = _is_verified(self._op, self._backend)
        before = None if verified else Unchanged(arrays)
        result = self.kernel(*arrays)
        parts = _parts(self._op, self._backend, result)
        _check_inputs(self._op, before)
        check_specs(self._op, self._backend, parts, [(x.shape, x.dtype) for x in self._specs])
        if out is not None and not verified:
            self._check_out(arrays, result, out)
        for scope, name in self._places:
            scope[name] = self.kernel
        if out is not None:
            out[...] = result
        return result

    def _check_out(self, arrays: Sequence[Any], result: Any, out: Any) -> None:
        """Raise if the kernel does not write its result into an array that it receives."""
        if self._op.random or self._op.effect:  # a second run may differ
            return
        # not `out`, which may be the memory of an input
        tried = np.array(~result if result.dtype.kind == "b" else result + 1, out.dtype)
        returned = self.kernel(*arrays, out=tried)
        if returned is not tried or not np.allclose(tried, result, equal_nan=True):
            raise PluginError(
                f"op {self._op.name!r}: its kernel for the backend {self._backend.name!r} has a "
                "parameter 'out', but does not write its result into it and return it"
            )


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
        if not _is_verified(op, backend):
            _check_numbers(op, backend, part)
    return parts


def _is_verified(op: Primitive, backend: Backend) -> bool:
    """Return whether the author of a kernel has checked it, so that no run needs to."""
    return op.verified and registry().replaced(op.name, backend.name) is None


def _is_small(value: Any) -> bool:
    return type(value) is np.ndarray and value.nbytes <= _COPIED


def _check_numbers(op: Primitive, backend: Backend, part: Any) -> None:
    """Raise if a result is not an array of numbers that tensors can have."""
    dtype = numpy_dtype(part.dtype)
    if type(dtype) not in DTYPES or not dtype.isnative:
        raise PluginError(
            f"op {op.name!r}: its kernel returned an array of dtype {dtype}, which tensors cannot "
            "have; let it return booleans, integers, floats or complex numbers in the machine's "
            "byte order"
        )
    if backend.xp is NUMPY and isinstance(part, np.ndarray) and type(part) is not np.ndarray:
        raise PluginError(
            f"op {op.name!r}: its kernel returned a {type(part).__name__}, whose operators differ "
            "from those of NumPy's arrays; let it return numpy.asarray(...) of the result"
        )


def _check_several(op: Primitive, several: bool, result: Any) -> None:
    """Raise if eager calls would return a list and traces a tensor, or the other way around."""
    if several is (type(result) in (tuple, list)):
        return
    told = (
        "a list, which is for several outputs, but its kernel returned one array"
        if several
        else "one shape and dtype, but its kernel returned a tuple or list of outputs"
    )
    raise PluginError(
        f"op {op.name!r}: its shape rule (infer=) returned {told}; calls would return a list, or "
        "traces would, but not both"
    )


def _check_inputs(op: Primitive, before: Unchanged | None) -> None:
    """Raise if the kernel changed an input."""
    if before is not None and not before.holds():
        raise PluginError(
            f"op {op.name!r}: its kernel wrote into an input, which a tensor holds; let it "
            "compute a new array"
        )


def _is_array(value: Any) -> bool:
    return (
        hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, ArrayHandle)
    )


def _check_traits(op: Primitive, first: Any, arrays: Sequence[Any], parts: Sequence[Any]) -> None:
    """Raise if ``identity`` or ``view=False`` does not hold; ``first`` is a copy of an input."""
    if first is not None and type(parts[0]) is np.ndarray:
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


def _inferred(op: Primitive, arrays: Sequence[Any], params: Any) -> Any:
    """Return what the shape rule says; None if there is none, or if it refuses."""
    sizes = [n for x in arrays if type(x) not in SCALARS for n in x.shape]
    if op.infer is None or op.effect or any(type(n) is not int for n in sizes):
        return None  # a compiler's symbols for sizes
    try:
        return inferred(op, arrays, params)
    except PluginError:
        raise
    except Exception:  # it says so itself in a trace
        return None
