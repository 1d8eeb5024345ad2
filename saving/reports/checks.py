"""The checks of ``verify``, and its report: run a file's functions on its samples, and compare."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ...core.extend import (
    ConcreteFunction,
    Graph,
    Variable,
    current_backend,
    init_scope,
    nodes_within,
)
from ...core.extend import backend as select_backend
from ..container.storage import open_file
from ..errors import DamagedFile, UnsafeFile, printable
from ..proofs.golden import evaluate, why
from ..proofs.samples import described, output_bytes
from ..reading.build import Built, build, streams_as_saved
from ..reading.contents import Contents, open_contents, read_case
from ..records.schema import at, variable_label
from .text import strict_json

# -- results ---------------------------------------------------------------------------------------


@dataclass
class Check:
    """One golden case: the largest relative error of the outputs and of each order of gradients.

    Attributes
    ----------
    function, case
        The function's name, and a description of its sample inputs.
    errors
        The largest errors by name: ``"output"``, ``"gradient"``, ``"second gradient"``.
    exact
        Whether everything is equal bit for bit.
    problem
        The problem as text; empty if there is none.
    """

    function: str
    case: str
    errors: dict[str, float] = field(default_factory=dict)
    exact: bool = True
    problem: str = ""

    @property
    def ok(self) -> bool:
        """Whether everything is within tolerance."""
        return not self.problem


@dataclass(repr=False)
class Report:
    """The result of :func:`verify`; printed, it is a table, and it is true if ``ok`` is.

    Attributes
    ----------
    path, backend
        The file, and the backend that its functions ran on.
    checks
        One per golden case.
    skipped
        Functions without golden vectors, with the reason.

    Examples
    --------
    >>> gt.saving.Report("model.h5", "numpy").ok  # nothing was checked
    False
    """

    path: str
    backend: str
    checks: list[Check] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether there was something to check, and all of it passed."""
        return bool(self.checks) and all(check.ok for check in self.checks)

    def __bool__(self) -> bool:
        return self.ok

    def json(self) -> str:
        """Return the report as JSON text.

        Returns
        -------
        str
            An object with the keys ``path``, ``backend``, ``ok``, ``checks`` (``function``,
            ``case``, ``ok``, ``exact``, ``errors`` and ``problem`` of each) and ``skipped``.
        """
        record = asdict(self)
        record["checks"] = [{**asdict(check), "ok": check.ok} for check in self.checks]
        record["skipped"] = [{"function": f, "reason": reason} for f, reason in self.skipped]
        return strict_json({**record, "ok": self.ok})

    def table(self) -> str:
        """Return the report as text.

        Returns
        -------
        str
            A table with one line per golden case, followed by what was not checked. Results are
            ``exact``, ``close`` (within tolerance) or ``MISMATCH``.
        """
        columns = ("output", "gradient", "second gradient")
        rows: list[tuple[str, ...]] = [
            ("Function", "Sample", "Output", "Gradients", "2nd order", "Result")
        ]
        for check in self.checks:
            cells = [_number(check.errors.get(column)) for column in columns]
            result = "exact" if check.exact else "close"
            rows.append((check.function, check.case, *cells, result if check.ok else "MISMATCH"))
        widths = [max(len(row[i]) for row in rows) for i in range(6)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        lines.insert(1, "-" * (sum(widths) + 10))
        lines += [f"{check.function}: {check.problem}" for check in self.checks if check.problem]
        lines += [f"{name}: not checked ({reason})" for name, reason in self.skipped]
        if not self.checks:
            lines.append("The file holds no golden vectors, so it proves nothing.")
        passed = sum(check.ok for check in self.checks)
        exact = sum(check.ok and check.exact for check in self.checks)
        lines.append(
            f"{passed} of {len(self.checks)} samples verified on {self.backend}, {exact} of them "
            "bit for bit."
        )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.table()


def _number(error: float | None) -> str:
    return "-" if error is None else "0" if error == 0 else f"{error:.1e}"


# -- running the functions of a file ---------------------------------------------------------------

# By the size of a real number, relative to the largest element; machines and backends round
# differently. What rounding leaves of values that cancel is so many times the last place of these.
TOLERANCE = {2: 2e-2, 4: 1e-4, 8: 1e-9, 16: 1e-9}
# What is float32 may come out of narrower numbers: their tolerance, and how far apart they are.
NARROWER = {"": (0.0, 0.0), "float16": (2e-2, 2.0**-10), "bfloat16": (5e-2, 2.0**-7)}
ROUNDING = 128
_ORDERS = {"gradient": 1, "second gradient": 2}

# What computing may take by default: so much, and more for a file with large variables.
LEAST_MEMORY, MEMORY_PER_BYTE = 2**30, 8


def checked(
    path: str,
    backend: str | None,
    max_bytes: int | None,
    max_memory: float | None,
    max_seconds: float,
    bound: Callable[[float], Any] = lambda size: None,
) -> Report:
    """Load a file, run its functions on its golden vectors, and compare, all in this process.

    Parameters
    ----------
    path, backend, max_bytes, max_memory, max_seconds
        As :func:`verify` has them.
    bound
        A function that receives the memory limit for computing, once everything is loaded.
    """
    end = time.monotonic() + max_seconds
    selected = select_backend(backend) if backend else contextlib.nullcontext()
    with init_scope(), selected, open_file(path, max_bytes) as file:
        contents = open_contents(file)
        built = build(contents)
        report = Report(file.path, backend or current_backend().name)
        names = {
            id(variable): variable_label(record.dataset)
            for variable, record in zip(built.variables, contents.manifest.variables, strict=True)
        }
        if max_memory is None:
            max_memory = LEAST_MEMORY + MEMORY_PER_BYTE * sum(file.sizes.values())
        bound(max_memory)
        for label, number, run in _functions(contents, built):
            record = contents.manifest.functions[number]
            for trace, concrete in zip(
                record.traces, built.functions[number].concrete_functions, strict=True
            ):
                if not trace.golden:
                    reason = trace.not_sampled or "saved without golden vectors"
                    report.skipped.append((label, reason))
                for case in trace.golden or ():
                    inputs, expected = read_case(contents, case, again=True)
                    if len(inputs) != len(concrete.specs):
                        raise DamagedFile(
                            f"{printable(label)}: a sample of {len(inputs)} inputs, for a trace "
                            f"that takes {len(concrete.specs)}"
                        )
                    signature = built.functions[number].signature
                    check = Check(label, described(signature, concrete, inputs))
                    if output_bytes(concrete, inputs) > max_memory:
                        raise too_much(max_memory, check)
                    try:
                        with streams_as_saved(contents, built):
                            _run(check, inputs, expected, run, concrete, built.variables, names)
                    except MemoryError:
                        raise too_much(max_memory, check) from None
                    report.checks.append(check)
                    if time.monotonic() > end:
                        raise too_long(max_seconds)
    return report


def too_much(max_memory: float, check: Check | None = None) -> UnsafeFile:
    """Return the error for a file whose functions exceed the memory limit."""
    what = f"{check.function} for {check.case}" if check else "what it computes"
    return UnsafeFile(
        f"{what} takes more than {max_memory:,.0f} bytes; raise max_memory if you trust the file"
    )


def too_long(max_seconds: float) -> UnsafeFile:
    """Return the error for a file whose functions exceed the time limit."""
    return UnsafeFile(
        f"what it computes takes longer than {max_seconds:g} s; raise max_seconds if you trust the "
        "file"
    )


def _functions(contents: Contents, built: Built) -> list[tuple[str, int, Any]]:
    """Return every function of the file once: its name, its number, and a function to run it."""
    found: dict[int, tuple[str, int, Any]] = {}
    for module, record in zip(built.modules, contents.manifest.modules, strict=True):
        known = record.known is not None
        for name, number in record.functions.items():
            function = at(built.functions, number, "function", "module")
            # a class that is known here runs its own code, and must agree with the saved trace
            run = module if known and name == "__call__" else function
            found.setdefault(number, (f"{record.name}.{name}", number, run))
        for key, encoded in (record.config or {}).items() if known else ():
            if "function" in encoded:
                number = encoded["function"]
                label = f"{record.name}.{key}"
                found.setdefault(number, (label, number, built.functions[number]))
    for name, number in contents.manifest.signatures.items():
        found.setdefault(number, (f"signatures.{name}", number, built.functions[number]))
    return [found[number] for number in sorted(found)]


def _run(
    check: Check,
    inputs: Sequence[np.ndarray[Any, Any]],
    expected: Mapping[str, np.ndarray[Any, Any]],
    run: Any,
    concrete: ConcreteFunction,
    variables: Sequence[Variable],
    names: dict[int, str],
) -> None:
    """Run a function on a golden case, and record its errors in ``check``."""
    order = max((_ORDERS.get(_order(name), 0) for name in expected), default=0)
    try:
        found = evaluate(run, concrete, inputs, variables, names, order, expected)
        if found.problem is not None:
            raise found.problem
        values = found.values
    except MemoryError:
        raise
    except Exception as error:  # whatever it is, the file does not do what it did
        check.exact, check.problem = False, why(error)
        return
    problems = []
    narrowest = _narrowest(concrete.graph)
    scales: dict[str, float] = {}
    for name, want in expected.items():
        scales[_order(name)] = max(scales.get(_order(name), 0.0), _largest(want))
    for name, want in expected.items():
        got = values.get(name)
        if got is None or got.shape != want.shape or got.dtype != want.dtype:
            problems.append(f"{name} is missing or has another shape or dtype")
            continue
        kind = _order(name)
        tolerance, rounding = _tolerance(want.dtype, narrowest)
        off = _relative_error(got, want, max(_largest(want), rounding * scales[kind]))
        check.errors[kind] = max(check.errors.get(kind, 0.0), off)
        check.exact = check.exact and np.array_equal(got, want, equal_nan=want.dtype.kind in "fc")
        if not off <= tolerance:
            problems.append(f"{name} differs by {off:.1e}")
    check.problem = "; ".join(problems)
    check.exact = check.exact and not problems


def _order(name: str) -> str:
    """Return ``output``, ``gradient`` or ``second gradient`` for the name of a golden value."""
    return name.partition(" of ")[0].rstrip("0123456789 ")


def _largest(array: np.ndarray[Any, Any]) -> float:
    size = np.abs(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64))
    return float(np.max(size, initial=0.0, where=np.isfinite(size)))


def _narrowest(graph: Graph) -> str:
    """Return the narrowest type below float32 that a trace computes in: a key of ``NARROWER``."""
    found = ""
    for node in nodes_within(graph):
        if getattr(node.op, "name", "") == "round_to_bfloat16":
            return "bfloat16"
        kinds = [x.dtype.name for x in node.outputs if x.dtype == np.float16]
        found = max([found, *kinds], key=list(NARROWER).index)
    return found


def _tolerance(dtype: np.dtype[Any], narrowest: str) -> tuple[float, float]:
    """Return the relative tolerance, and the fraction of the largest value to compare with.

    A gradient that cancels (a bias before BatchNorm) is only the rounding of larger ones, so its
    own size cannot be the measure. A small gradient that does not cancel is measured by its own
    size.
    """
    if dtype.kind not in "fc":
        return 0.0, 1.0
    real_size = dtype.itemsize // (2 if dtype.kind == "c" else 1)
    least, last_place = NARROWER[narrowest]
    tolerance = max(TOLERANCE.get(real_size, 0.0), least)
    last_place = max(float(np.finfo(dtype).eps), last_place)
    return tolerance, min(1.0, ROUNDING * last_place / tolerance)


def _relative_error(got: np.ndarray[Any, Any], want: np.ndarray[Any, Any], scale: float) -> float:
    """Return the largest difference, relative to the measure of a value."""
    if got.size == 0 or np.array_equal(got, want, equal_nan=want.dtype.kind in "fc"):
        return 0.0
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    a, b = got.astype(wide), want.astype(wide)
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return float("inf")
    with np.errstate(invalid="ignore"):
        difference = np.where(a == b, 0.0, np.abs(a - b))
    return float(np.nanmax(difference, initial=0.0)) / (scale or 1.0)
