"""``check_backend``: compares all ops and functions on another backend with NumPy's.

The backend of ``array-api-strict`` has the functions of the array API standard, no more.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module, util
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

import gradtape

from ..core.errors import BackendUnavailable, PluginError, UnknownOp
from ..core.extend import (
    Backend,
    GradientTape,
    Tensor,
    backend_of,
    constant,
    describe,
    flatten,
    function,
    hookimpl,
    map_structure,
    register_plugin,
    registry,
    unregister_plugin,
)
from ..core.extend import backend as selected
from .contracts import broken_promises
from .report import PASSED, REFUSED, WRONG, Findings, Report, quiet
from .samples import Sample

UNTRACED = "untraced"
#: The tolerances of results, relative and absolute, by their precision.
TOLERANCES = {8: (1e-9, 1e-11), 4: (1e-5, 1e-6), 2: (1e-2, 1e-3)}
#: What the names of functions begin with, among those of ops.
_FUNCTION = "gt."


@dataclass(frozen=True)
class BackendReport(Report):
    """The findings of :func:`check_backend`; its text is a table of everything that did not pass.

    Attributes
    ----------
    kind, name
        ``"backend"``, and the backend's name.
    passed
        Ops, by name, and functions, by their names under ``gt``, all of whose samples gave the same
        results as on NumPy.
    refused
        Those that raised an error for a sample, with the error.
    wrong
        Those that gave other results than on NumPy, with the difference.
    seconds
        The duration in seconds.

    Examples
    --------
    >>> report = gt.testing.check_backend("numpy", only=["sin", "gt.nn.dropout"], show=False)
    >>> report.passed
    ['sin', 'gt.nn.dropout']
    >>> report.refused, report.wrong
    ({}, {})
    """

    noun: ClassVar[str] = "ops and functions"

    @property
    def backend(self) -> str:
        """The backend's name."""
        return self.name


def check_backend(
    name: str, *, only: Iterable[str] | None = None, traced: bool = False, show: bool = True
) -> BackendReport:
    """Run the samples of all ops and public functions on a backend, those of plugins included.

    A plugin provides samples of its ops by the hook ``gradtape_samples``. Values and dtypes of
    results and of first-order gradients must be the same as on NumPy, up to rounding, and must be
    on the backend. New arrays must be copies, and optimizers must change variables as on NumPy.

    Parameters
    ----------
    name
        The backend's name, with a device if it is not the default one: ``"cupy:1"``.
    only
        The names to check: those of ops, and of functions as users call them: ``"gt.nn.hinge"``.
        All by default.
    traced
        Whether to run traces, as the backend compiles them, instead of one op at a time. Samples
        that cannot be traced on any backend are skipped. False by default.
    show
        Whether to print the report.

    Returns
    -------
    BackendReport
        What passed, what the backend refused, and what was wrong; its text is a table.

    Raises
    ------
    LookupError
        If no plugin provides the backend, or a name in ``only`` does not exist.
    BackendUnavailable
        If the backend cannot be used here.

    Examples
    --------
    >>> report = gt.testing.check_backend("numpy", only=["sin", "matmul"], traced=True)
    backend 'numpy': 2 ops and functions in 0 s: 2 passed (sin, matmul), 0 refused, 0 wrong
    >>> assert not report.wrong
    """
    backend = registry().backend(name.partition(":")[0])
    _ = backend.xp  # raise now, with the reason
    findings = Findings("backend", name)
    with quiet():
        for method, why in broken_promises(backend, name):
            findings.note(f"Backend.{method}", WRONG, why)
    for called, op, samples in _chosen(only):
        with quiet():
            told = [_check(op, sample, name, traced) for sample in samples]
        told = [(status, why) for status, why in told if status != UNTRACED]
        if not told:
            continue
        status = next(s for s in (WRONG, REFUSED, PASSED) if any(s == found for found, _ in told))
        reasons = [reason for found, reason in told if found == status]
        count = f"{len(reasons)} of {len(told)} samples: " if len(told) > 1 else ""
        findings.note(called, status, f"{count}{reasons[0]}")
    report: BackendReport = findings.report(show, BackendReport)
    return report


def _chosen(only: Iterable[str] | None) -> Iterator[tuple[str, Callable[..., Any], Any]]:
    """Give the ops and functions to check, with their names and samples."""
    there = registry().samples
    for name in there if only is None else only:
        if name not in there:
            raise LookupError(
                f"check_backend: there are no samples of {name!r}; names are those of ops, such as "
                "'sin', and of functions, such as 'gt.nn.hinge'. A plugin provides samples by the "
                "hook gradtape_samples"
            )
        path = name.removeprefix(_FUNCTION)
        yield name, as_called(path) if path != name else _op(name), there[name]


def _op(name: str) -> Callable[..., Any]:
    """Return an op; for one that no plugin provides, a function that says so."""
    try:
        return registry().op(name)
    except UnknownOp as error:
        return _raising(error)


def _raising(error: Exception) -> Callable[..., Any]:
    def run(*inputs: Any, **params: Any) -> Any:
        raise error

    return run


def as_called(name: str) -> Callable[..., Any]:
    """Return a public function that takes the tensors of its samples by position."""
    function: Any = functools.reduce(getattr, name.split("."), gradtape)
    parameters = inspect.signature(function).parameters.values()
    keywords = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if not keywords:
        return function

    def call(*tensors: Any, **params: Any) -> Any:
        return function(**dict(zip(keywords, tensors, strict=True)), **params)

    call.__name__ = function.__name__
    return call


def _check(op: Callable[..., Any], sample: Sample, backend: str, traced: bool) -> tuple[str, str]:
    """Return the outcome of a sample, and the reason."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        gradients = True
        try:
            want = slopes(op, sample, "numpy")
        except Exception:
            gradients = False  # some derivatives are known to be unavailable
            try:
                want = slopes(op, sample, "numpy", gradients=False)
            except Exception as error:
                return REFUSED, f"{sample!r}: on numpy: {type(error).__name__}: {error}"
        try:
            got = slopes(op, sample, backend, traced, gradients)
        except Exception as error:
            if traced and not _traceable(op, sample):
                return UNTRACED, ""
            # a kernel whose result is not what its op's record says
            status = WRONG if isinstance(error, PluginError) else REFUSED
            return status, f"{sample!r}: {type(error).__name__}: {error}"
        difference = _difference(got, want)
    return (WRONG, f"{sample!r}: {difference}") if difference else (PASSED, "")


def _traceable(op: Callable[..., Any], sample: Sample) -> bool:
    """Return whether the op can be traced with the sample on NumPy."""
    try:
        slopes(op, sample, "numpy", traced=True)
    except Exception:
        return False
    return True


def slopes(
    op: Callable[..., Any],
    sample: Sample,
    backend: str,
    traced: bool = False,
    gradients: bool = True,
) -> list[NDArray[Any]]:
    """Return the results and gradients of an op on a backend, as NumPy arrays.

    Raises the op's own errors, and ``TypeError`` if results are on another backend.
    """
    arrays = any(isinstance(x, np.ndarray) for x in sample.inputs)
    # others run without a selection: their results must be where their inputs are
    with selected(backend) if sample.selects or not arrays else nullcontext():
        return _slopes(op, sample, backend, traced, gradients)


def _slopes(
    op: Callable[..., Any], sample: Sample, backend: str, traced: bool, gradients: bool
) -> list[NDArray[Any]]:
    fed = sample.feed(*(constant(x) if isinstance(x, np.ndarray) else x for x in sample.inputs))
    given = fed if isinstance(fed, tuple) else (fed,)
    distinct = {id(x): x for x in flatten(given) if isinstance(x, Tensor)}
    tensors = [x.to(backend) for x in distinct.values()]
    places = dict(zip(distinct, range(len(tensors)), strict=True))
    differentiable = gradients and getattr(op, "differentiable", True)

    def run(tensors: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        # a tensor that occurs twice stays one tensor
        inputs = map_structure(lambda x: tensors[places[id(x)]] if id(x) in places else x, given)
        sources = [x for x in tensors if x.dtype.kind in "fc"]
        with GradientTape() as tape:
            tape.watch(sources)
            results = op(*inputs, **sample.params)
        results = list(results) if isinstance(results, (list, tuple)) else [results]
        if not traced:
            _check_places(results, backend)
        followed = [y for y in results if y.dtype.kind in "fc"]
        if not (differentiable and followed and sources):
            return results, []
        return results, tape.gradient(
            followed, sources, output_gradients=followed, unconnected_gradients="zero"
        )

    results, slopes = (function(run) if traced else run)(tensors)
    _check_places((*results, *slopes), backend)
    shown = sample.view(*(y.to("numpy") for y in results))
    shown = list(shown) if isinstance(shown, (list, tuple)) else [shown]
    return [y.to("numpy").numpy() for y in (*shown, *slopes)]


def _check_places(tensors: Iterable[Any], backend: str) -> None:
    for y in tensors:
        where = backend_of(y.array).name
        if where != backend.partition(":")[0]:
            raise TypeError(f"a result or gradient is on the backend {where!r}")


def _difference(got: Sequence[NDArray[Any]], want: Sequence[NDArray[Any]]) -> str:
    """Return a description of how results and gradients differ; empty if they do not."""
    if len(got) != len(want):
        return f"{len(got)} results and gradients instead of {len(want)}"
    for i, (mine, right) in enumerate(zip(got, want, strict=True)):
        if (mine.shape, mine.dtype) != (right.shape, right.dtype):
            mine_is, right_is = (describe(x.shape, x.dtype) for x in (mine, right))
            return f"number {i} of results and gradients is {mine_is} instead of {right_is}"
        size = right.real.dtype.itemsize if right.dtype.kind in "fc" else 8
        relative, absolute = TOLERANCES.get(size, TOLERANCES[8])
        if not np.allclose(mine, right, rtol=relative, atol=absolute, equal_nan=True):
            return f"number {i} of results and gradients is {_flat(mine)} instead of {_flat(right)}"
    return ""


def _flat(array: NDArray[Any]) -> str:
    return np.array2string(array, threshold=20, max_line_width=10**6).replace("\n", "")


MODULE = "array_api_strict"


class StrictBackend(Backend):
    """``array_api_strict.Array``, on the library's first device."""

    name = "array-api-strict"
    array_module = MODULE

    @property
    def xp(self) -> Any:
        """The library."""
        try:
            return import_module(MODULE)
        except ImportError as error:
            raise BackendUnavailable(f"{error}; pip install array-api-strict") from error

    def asarray(self, value: Any, dtype: Any = None, device: str | None = None) -> Any:
        """Return a new array."""
        if device not in (None, "cpu"):
            raise ValueError(f"{self.name} has only the device 'cpu' here, not {device!r}")
        return self.xp.asarray(np.array(value, dtype=dtype), copy=True)

    def to_numpy(self, array: Any) -> NDArray[Any]:
        """Return a copy for NumPy."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on conversions that the standard does not have
            return np.asarray(array)


class _Plugin:
    @staticmethod
    @hookimpl
    def gradtape_backends() -> list[Backend]:
        return [StrictBackend()]


@contextmanager
def strict_backend(wanted: bool = True) -> Iterator[Sequence[str]]:
    """Provide the backend during a block, unless a plugin provides one for these arrays.

    Parameters
    ----------
    wanted
        Whether it is needed.

    Yields
    ------
    sequence of str
        The backend's name, if you need it and the library is installed.
    """
    if not wanted or util.find_spec(MODULE) is None:
        yield ()
        return
    own = [name for name, x in registry().backends.items() if x.array_module == MODULE]
    if own:
        yield own
        return
    register_plugin(_Plugin(), "gradtape.testing")
    try:
        yield (StrictBackend.name,)
    finally:
        unregister_plugin("gradtape.testing")
