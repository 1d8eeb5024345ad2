"""``check_executor``: runs programs by an executor, and compares with one kernel call per node."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.extend import (
    TensorSpec,
    describe,
    flatten,
    function,
    hookimpl,
    register_plugin,
    registry,
    unregister_plugin,
)
from ..core.extend import executor as selected
from .report import PASSED, REFUSED, WRONG, Findings, Report, reason_of

Array = NDArray[Any]
#: How often the calls of a program are repeated: some executors compile what runs often.
ROUNDS = 4
#: The relative tolerances of sums in another order, by the bytes of a real number.
TOLERANCES = {2: 4e-3, 4: 2e-5, 8: 1e-11}
#: The numbers in the names of executors that are passed as functions.
_number = count(1).__next__


def check_executor(
    executor: str | Callable[..., Any],
    *,
    only: Iterable[str] | None = None,
    ulps: int | None = None,
    show: bool = True,
) -> Report:
    """Run programs by an executor several times, and compare them with the executor ``"plain"``.

    The programs have all dtypes, unknown sizes and ranks, other shapes in later runs, several
    outputs, views, arrays without elements, control flow, gradients, assignments, random numbers,
    and ops that fail. Results must be right and keep their values, arguments must stay unchanged,
    and a program that fails must assign nothing.

    Parameters
    ----------
    executor
        The name of one that a plugin provides, or a function of a graph.
    only
        The names of the programs; all by default.
    ulps
        By how many units in the last place numbers may differ, ``0`` for the same bits. By default
        they may differ as sums in another order do: relative to the largest number of an array, by
        2e-5 in single, and by 1e-11 in double precision.
    show
        Whether to print the report.

    Returns
    -------
    Report
        Programs that passed, those that it left to ``"plain"`` because it failed, and those with
        wrong results.

    Raises
    ------
    LookupError
        If no plugin provides the executor, or there is no such program.

    Examples
    --------
    >>> report = gt.testing.check_executor("planned", only=["sums", "loops"])
    executor 'planned': 2 checks in 0 s: 2 passed (sums, loops), 0 refused, 0 wrong
    """
    from . import programs  # it takes time to make the arrays

    every = programs.PROGRAMS
    chosen = list(every if only is None else only)
    for name in chosen:
        if name not in (*every, *OTHERS):
            raise LookupError(
                f"check_executor: there is no program {name!r}; there are: "
                f"{', '.join((*every, *OTHERS))}"
            )
    if only is None:
        chosen += OTHERS
    with _named(executor) as name:
        registry().executor(name)
        findings = Findings("executor", _title(executor))
        for what in chosen:
            check = OTHERS.get(what, _check)
            findings.note(what, *check(every.get(what, every["elementwise"]), name, ulps))
    report: Report = findings.report(show)
    return report


def _title(executor: str | Callable[..., Any]) -> str:
    return executor if isinstance(executor, str) else getattr(executor, "__name__", repr(executor))


@contextmanager
def _named(executor: str | Callable[..., Any]) -> Iterator[str]:
    """Give the executor's name; one that is a function has a name during the block."""
    if isinstance(executor, str):
        yield executor
        return

    class Plugin:
        @staticmethod
        @hookimpl
        def gradtape_executors() -> dict[str, Any]:
            return {name: executor}

    # a new name, because graphs keep what an executor made for them
    name = f"gradtape.testing.executor{_number()}"
    register_plugin(Plugin(), name)
    try:
        yield name
    finally:
        unregister_plugin(name)


class _Failed:
    """The error of a call, which another executor must raise as well."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.told = type(error).__name__, getattr(error, "named_op", None)


def _run(make: Callable[[], Any], name: str) -> tuple[list[Any], list[Array]]:
    """Return the results of all calls of a program, and what its variables were after each."""
    program = make()
    traced = function(program.run, input_signature=program.signature, executor=name)
    call = program.around(traced)
    results: list[Any] = []
    states: list[Array] = []
    kept: list[tuple[Any, Array]] = []
    for _ in range(ROUNDS):
        for given in program.calls:
            before = [np.array(x.numpy()) for x in given]
            try:
                with selected(name):  # for the graphs in loops and branches
                    found = [y for y in flatten(call(*given)) if y is not None]
            except Exception as error:
                results.append(_Failed(error))
            else:
                values = [np.array(y.numpy()) for y in found]
                kept += zip(found, values, strict=True)
                results.append(values)
            for x, then in zip(given, before, strict=True):
                if x.numpy().tobytes() != then.tobytes():
                    x.array[...] = then  # which other programs use as well
                    raise AssertionError("it changes an argument")
            states += [np.array(v.numpy()) for v in program.variables]
    for y, then in kept:
        if y.numpy().tobytes() != then.tobytes():
            raise AssertionError("a later run overwrites a result of an earlier one")
    return results, states


def _check(make: Callable[[], Any], name: str, ulps: int | None) -> tuple[str, str]:
    """Return the outcome of a program, and the reason."""
    with warnings.catch_warnings(record=True) as told, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        want = _run(make, "plain")
        try:
            got = _run(make, name)
            _compare(got, want, ulps)
        except Exception as error:
            return WRONG, reason_of(error)
    left = [str(x.message) for x in told if str(x.message).startswith(f"executor {name!r} failed")]
    return (REFUSED, left[0].partition("; the plain")[0]) if left else (PASSED, "")


def _compare(got: Any, want: Any, ulps: int | None) -> None:
    """Raise if results or variables differ."""
    for i, (mine, right) in enumerate(zip(got[0], want[0], strict=True)):
        if isinstance(mine, _Failed) or isinstance(right, _Failed):
            _compare_errors(f"call {i}", mine, right)
            continue
        if len(mine) != len(right):
            raise AssertionError(f"call {i} returned {len(mine)} results instead of {len(right)}")
        for j, (x, y) in enumerate(zip(mine, right, strict=True)):
            _near(f"result {j} of call {i}", x, y, ulps)
    for x, y in zip(got[1], want[1], strict=True):
        _near(f"after a call, the variable of shape {y.shape}", x, y, ulps)


def _compare_errors(what: str, mine: Any, right: Any) -> None:
    if not isinstance(mine, _Failed):
        raise AssertionError(f"{what} raises no error instead of {reason_of(right.error)}")
    if not isinstance(right, _Failed):
        raise AssertionError(f"{what} raises {reason_of(mine.error)}") from mine.error
    if mine.told != right.told:
        raise AssertionError(
            f"{what} raises {reason_of(mine.error)}, instead of {reason_of(right.error)}"
        )


def _near(what: str, mine: Array, right: Array, ulps: int | None) -> None:
    """Raise if an array has another shape or dtype, or values that differ too much."""
    is_, wanted = describe(mine.shape, mine.dtype), describe(right.shape, right.dtype)
    if is_ != wanted:
        raise AssertionError(f"{what} is {is_} instead of {wanted}")
    if mine.tobytes() == right.tobytes():
        return
    parts = [(mine, right)]
    if mine.dtype.kind == "c":
        parts = [(mine.real, right.real), (mine.imag, right.imag)]
    for x, y in parts:
        if not _are_near(x, y, ulps):
            raise AssertionError(f"{what} is {_flat(mine)} instead of {_flat(right)}")


def _are_near(x: Array, y: Array, ulps: int | None) -> bool:
    if y.dtype.kind != "f":
        return bool(np.array_equal(x, y))
    numbers = np.isfinite(y)
    if not np.array_equal(x[~numbers], y[~numbers], equal_nan=True):
        return False
    mine, right = x[numbers], y[numbers]
    if ulps is None:
        scale = float(np.abs(right).max(initial=0.0))
        relative = TOLERANCES.get(y.dtype.itemsize, TOLERANCES[8])
        return bool(np.all(np.abs(mine - right) <= relative * max(scale, 1e-30)))
    if not np.array_equal(np.signbit(mine[right == 0]), np.signbit(right[right == 0])):
        return False
    return bool(np.all(np.abs(mine - right) <= ulps * np.spacing(np.abs(right))))


def _flat(array: Array) -> str:
    return np.array2string(array, threshold=20, max_line_width=10**6).replace("\n", "")


def _in_threads(make: Callable[[], Any], name: str, ulps: int | None) -> tuple[str, str]:
    """Run one traced function in several threads at once."""
    program = make()
    traced = function(program.run, executor=name)
    want = [program.run(*given).numpy() for given in program.calls]
    problems: list[str] = []

    def work(number: int) -> None:
        try:
            for i in range(40):
                place = (i + number) % len(want)
                _near("a result", traced(*program.calls[place]).numpy(), want[place], ulps)
        except Exception as error:
            problems.append(reason_of(error))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return (WRONG, problems[0]) if problems else (PASSED, "")


def _other_arrays(make: Callable[[], Any], name: str, ulps: int | None) -> tuple[str, str]:
    """Run a graph on arrays of other shapes and dtypes than it was traced for, as loops do."""
    specs = [TensorSpec([3], "float32")] * 2
    graph = function(lambda x, y: (x * y + x, x - y)).get_concrete_function(*specs).graph
    try:
        run = registry().executor(name)(graph)
        for shape, dtype in (((3,), "float32"), ((2, 3), "float32"), ((3,), "complex128")):
            x = np.arange(6.0).reshape(2, 3)[: shape[0] if len(shape) > 1 else 1]
            x = x.reshape(shape).astype(dtype)
            found = run([x, x + 1])
            what = f"for arrays {describe(x.shape, x.dtype)}, a result"
            for got, want in zip(found, (x * (x + 1) + x, x - (x + 1)), strict=True):
                _near(what, np.asarray(got), want, ulps)
    except Exception as error:
        return WRONG, reason_of(error)
    return PASSED, ""


def _explained(make: Callable[[], Any], name: str, ulps: int | None) -> tuple[str, str]:
    """Check that ``explain`` of the traced function raises no error."""
    program = make()
    traced = function(program.run, executor=name)
    try:
        traced(*program.calls[0])
        str(traced.explain(*program.calls[0]))
    except Exception as error:
        return WRONG, reason_of(error)
    return PASSED, ""


OTHERS: dict[str, Callable[[Callable[[], Any], str, int | None], tuple[str, str]]] = {
    "in threads": _in_threads,
    "other arrays": _other_arrays,
    "explanation": _explained,
}
