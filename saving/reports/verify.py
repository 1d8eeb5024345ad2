"""``verify``: does a file still compute what it computed when it was saved?"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...core.extend import (
    ConcreteFunction,
    Variable,
    current_backend,
    init_scope,
)
from ...core.extend import (
    backend as select_backend,
)
from ..container.file import SafeFile
from ..proofs.golden import evaluate, why
from ..proofs.samples import described
from ..reading.build import Built, build, streams_as_saved
from ..reading.contents import Contents, open_contents, read_case
from ..records.schema import take, variable_label

__all__ = ["Check", "Report", "verify"]

# Relative to the largest value of its order; rounding differs between machines and backends.
TOLERANCE = {2: 2e-2, 4: 1e-4, 8: 1e-9, 16: 1e-9}


@dataclass
class Check:
    """One golden case: the largest relative error of the outputs and of each order of gradients.

    Attributes
    ----------
    function, case
        The function's name, and what its sample inputs are.
    errors
        The largest errors by name: ``"output"``, ``"gradient"``, ``"second gradient"``.
    exact
        Whether everything is equal bit for bit.
    problem
        What is wrong, in words; empty if nothing is.
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


@dataclass
class Report:
    """The result of :func:`verify`.

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

    def table(self) -> str:
        """Return the report as text.

        Returns
        -------
        str
            A table with a line per golden case, then what was not checked.
        """
        columns = ("output", "gradient", "second gradient")
        rows: list[tuple[str, ...]] = [
            ("Function", "Sample", "Outputs", "Gradients", "2nd order", "Result")
        ]
        for check in self.checks:
            cells = [_number(check.errors.get(column)) for column in columns]
            result = "equal bit for bit" if check.exact else "equal within tolerance"
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
        lines.append(f"{passed} of {len(self.checks)} samples verified on {self.backend}.")
        return "\n".join(lines)


def verify(
    path: str | os.PathLike[str], backend: str | None = None, *, max_bytes: int | None = None
) -> Report:
    """Load a file, run its functions on its golden vectors, and compare.

    Parameters
    ----------
    path
        The file.
    backend
        The backend to run on; the current one by default.
    max_bytes
        As in :func:`gradtape.load`.

    Returns
    -------
    Report
        ``report.ok`` says whether outputs, gradients and second-order gradients agree.

    Raises
    ------
    LoadError
        If the file cannot be loaded.
    LookupError
        If no plugin provides the backend.

    Examples
    --------
    >>> import os, tempfile
    >>> model = gt.layers.Dense(2)
    >>> shape = model(gt.ones((1, 3))).shape
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.h5")
    ...     gt.save(model, path)
    ...     report = gt.saving.verify(path)
    >>> report.ok
    True
    """
    selected = select_backend(backend) if backend else contextlib.nullcontext()
    with init_scope(), SafeFile(path, max_bytes) as file, selected:
        contents = open_contents(file)
        built = build(contents)
        report = Report(file.path, backend or current_backend().name)
        names = {
            id(variable): variable_label(record["dataset"])
            for variable, record in zip(built.variables, contents.variables, strict=True)
        }
        for label, number, run in _functions(contents, built):
            record = contents.functions[number]
            for trace, concrete in zip(
                record["traces"], built.functions[number].concrete_functions, strict=True
            ):
                if not trace.get("golden"):
                    reason = str(trace.get("not_sampled", "saved without golden vectors"))
                    report.skipped.append((label, reason))
                for case in trace.get("golden", []):
                    inputs, expected = read_case(contents, case, again=True)
                    signature = built.functions[number].signature
                    check = Check(label, described(signature, concrete, inputs))
                    with streams_as_saved(contents, built):
                        _run(check, inputs, expected, run, concrete, built.variables, names)
                    report.checks.append(check)
    return report


def _functions(contents: Contents, built: Built) -> list[tuple[str, int, Any]]:
    """Return every function of the file once: what to call it, its number, and what runs it."""
    found: dict[int, tuple[str, int, Any]] = {}
    for module, record in zip(built.modules, contents.modules, strict=True):
        for name, number in take(record, "functions", dict, "module").items():
            # a class that is known here runs its own code, and must agree with the saved trace
            own = record["class"] is not None and name == "__call__"
            run = module if own else built.functions[number]
            found.setdefault(number, (f"{record['name']}.{name}", number, run))
        for key, encoded in record.get("config", {}).items():
            if "function" in encoded:
                number = encoded["function"]
                label = f"{record['name']}.{key}"
                found.setdefault(number, (label, number, built.functions[number]))
    for name, number in contents.signatures.items():
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
    """Run a function on a golden case and note in ``check`` how far it is off."""
    order = 2 if any(_order(name) == "second gradient" for name in expected) else 1
    try:
        found = evaluate(run, concrete, inputs, variables, names, order, expected)
        if found.problem is not None:
            raise found.problem
        values = found.values
    except Exception as error:  # whatever it is, the file does not do what it did
        check.exact, check.problem = False, why(error)
        return
    problems = []
    scales: dict[str, float] = {}
    for name, want in expected.items():
        scales[_order(name)] = max(scales.get(_order(name), 0.0), _largest(want))
    for name, want in expected.items():
        got = values.get(name)
        if got is None or got.shape != want.shape or got.dtype != want.dtype:
            problems.append(f"{name} is missing or has another shape or dtype")
            continue
        kind = _order(name)
        off = _relative_error(got, want, scales[kind])
        check.errors[kind] = max(check.errors.get(kind, 0.0), off)
        check.exact = check.exact and np.array_equal(got, want, equal_nan=want.dtype.kind in "fc")
        real_size = want.dtype.itemsize // (2 if want.dtype.kind == "c" else 1)
        tolerance = TOLERANCE.get(real_size, 0.0) if want.dtype.kind in "fc" else 0.0
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


def _relative_error(got: np.ndarray[Any, Any], want: np.ndarray[Any, Any], scale: float) -> float:
    """Return the largest difference, relative to the largest value of its order in the sample.

    A gradient that cancels (a bias before BatchNorm) is nothing but rounding: its own size is no
    measure of it.
    """
    if got.size == 0 or np.array_equal(got, want, equal_nan=want.dtype.kind in "fc"):
        return 0.0
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    a, b = got.astype(wide), want.astype(wide)
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return float("inf")
    with np.errstate(invalid="ignore"):
        difference = np.where(a == b, 0.0, np.abs(a - b))
    return float(np.nanmax(difference, initial=0.0)) / (scale or 1.0)


def _number(error: float | None) -> str:
    return "-" if error is None else "0" if error == 0 else f"{error:.1e}"
