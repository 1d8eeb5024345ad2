"""``check_executor``: each mistake of an executor is found, by a program that is named after it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import plain
from gradtape.testing import Report, check_executor
from gradtape.testing.programs import PROGRAMS


def returning(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """An executor that changes each result."""
    return lambda graph: lambda arrays: [change(y) for y in plain(graph)(arrays)]


def in_one_memory(graph: Any) -> Any:
    run, held = plain(graph), {}

    def execute(arrays: Any) -> Any:
        found = run(arrays)
        for i, y in enumerate(found):
            if held.setdefault((i, y.shape, y.dtype), np.array(y)).shape == y.shape:
                held[i, y.shape, y.dtype][...] = y
        return [held[i, y.shape, y.dtype] for i, y in enumerate(found)]

    return execute


def spoiling(graph: Any) -> Any:
    def execute(arrays: Any) -> Any:
        found = [np.array(y) for y in plain(graph)(arrays)]
        for x in arrays:
            if x.flags.writeable and x.dtype == "float32":
                x[...] = 0
        return found

    return execute


def of_first_shapes(graph: Any) -> Any:
    shapes: list[Any] = []

    def execute(arrays: Any) -> Any:
        found = plain(graph)(arrays)
        shapes[:] = shapes or [y.shape for y in found]
        return [np.resize(y, shape) for y, shape in zip(found, shapes, strict=True)]

    return execute


def of_traced_shapes(graph: Any) -> Any:
    def execute(arrays: Any) -> Any:
        found = plain(graph)(arrays)
        pairs = zip(found, graph.outputs, strict=True)
        return [np.resize(y, symbol.shape) for y, symbol in pairs]

    return execute


def remembering(graph: Any) -> Any:
    first: list[Any] = []

    def execute(arrays: Any) -> Any:
        first[:] = first or plain(graph)(arrays)
        return list(first)

    return execute


def without_updates(graph: Any) -> Any:
    return plain(graph.without_updates())


def twice(graph: Any) -> Any:
    run = plain(graph)
    return lambda arrays: (run(arrays), run(arrays))[1]


def assigning_before(graph: Any) -> Any:
    run = plain(graph)

    def execute(arrays: Any) -> Any:
        try:
            return run(arrays)
        except Exception:
            for variable in graph.updates:
                variable.set_array(variable.array + 1)
            raise

    return execute


def never_failing(graph: Any) -> Any:
    def execute(arrays: Any) -> Any:
        with suppress(IndexError):
            return plain(graph)(arrays)
        return [np.zeros(y.shape, y.dtype) for y in graph.outputs]

    return execute


def failing_otherwise(graph: Any) -> Any:
    def execute(arrays: Any) -> Any:
        try:
            return plain(graph)(arrays)
        except IndexError as error:
            raise MemoryError from error

    return execute


def in_one_place(graph: Any) -> Any:
    run, place = plain(graph), SimpleNamespace()

    def execute(arrays: Any) -> Any:
        place.arrays = arrays
        time.sleep(0.0005)
        return run(place.arrays)

    return execute


def silent(graph: Any) -> Any:
    run = plain(graph)
    run.explain = lambda: 1 / 0
    return run


def narrow(y: Any) -> Any:
    return y.astype("float32") if y.dtype == "float64" else y


# what is wrong: (the executor, a program that finds it, what it says)
WRONG: dict[str, tuple[Any, str, str]] = {
    "values": (
        returning(lambda y: y * y.dtype.type(1.01)),
        "elementwise",
        r"result 0 of call 0 is",
    ),
    "half an ulp of half": (
        returning(lambda y: y + y.dtype.type(0.01) if y.dtype == "float16" else y),
        "dtype float16",
        "result 3 of call 0",
    ),
    "double as single": (returning(narrow), "dtype float64", r"float32\[.*instead of float64"),
    "signed integers only": (
        returning(lambda y: y.astype("int8") if y.dtype == "uint8" else y),
        "dtype uint8",
        "int8.* instead of uint8",
    ),
    "no imaginary part": (
        returning(lambda y: y.real.astype(y.dtype)),
        "dtype complex64",
        "result 0 of call 0",
    ),
    "no nan": (returning(np.nan_to_num), "special values", "result 0 of call 0"),
    "no axis": (returning(np.atleast_1d), "no axes", r"\[1\]"),
    "one memory": (in_one_memory, "sums", "a later run overwrites a result"),
    "arguments": (spoiling, "elementwise", "changes an argument"),
    "first shapes": (of_first_shapes, "unknown sizes", r"result 0 of call 1 is float32\[4, 5\]"),
    "the shapes of the trace": (
        of_traced_shapes,
        "other arrays",
        r"for arrays float32\[2, 3\], a result is",
    ),
    "first results": (remembering, "choices", "result 0 of call 1"),
    "first random numbers": (remembering, "random numbers", "result 0 of call 1"),
    "nothing assigned": (without_updates, "assignments", "result 0 of call 1"),
    "assigned twice": (twice, "assignments", "call 0"),
    "swapped twice": (twice, "swapped variables", r"variable of shape \(2,\)"),
    "assigned in spite of an error": (
        assigning_before,
        "failing after assignments",
        r"after a call, the variable of shape \(2,\)",
    ),
    "no error": (never_failing, "failing ops", "call 1 raises no error instead of IndexError"),
    "another error": (
        failing_otherwise,
        "failing ops",
        "call 1 raises MemoryError.*instead of Ind",
    ),
    "one thread": (in_one_place, "in threads", "a result is"),
    "no explanation": (silent, "explanation", "ZeroDivisionError"),
    "too few results": (lambda graph: lambda arrays: [], "several outputs", "0 results instead of"),
    "nothing made": (lambda graph: None, "loops", "it made None"),
}


@pytest.mark.parametrize("name", ["plain", "planned", "default"])
def test_executors_of_gradtape_give_the_same_bits(name: str) -> None:
    report = check_executor(name, ulps=0, show=False)
    assert (report.wrong, report.refused) == ({}, {})
    assert (report.kind, report.name) == ("executor", name)
    assert {*PROGRAMS, "in threads", "other arrays", "explanation"} == set(report.passed)


def test_compiled_sums_may_have_another_order() -> None:
    pytest.importorskip("llvmlite")
    report = check_executor("fused", show=False)
    assert (report.wrong, report.refused) == ({}, {})


@pytest.mark.parametrize("mistake", WRONG)
def test_each_mistake_is_found(mistake: str) -> None:
    executor, program, says = WRONG[mistake]
    report = check_executor(executor, only=[program], show=False)
    assert list(report.wrong) == [program]
    assert re.search(says, report.wrong[program]), report.wrong[program]


def test_what_it_cannot_compile_is_refused() -> None:
    def small(graph: Any) -> Any:
        if len(graph.nodes) > 100:
            raise NotImplementedError("more than 100 nodes")
        return plain(graph)

    report = check_executor(small, only=["sums", "many nodes"], show=False)
    assert (report.passed, report.wrong) == (["sums"], {})
    assert "NotImplementedError: more than 100 nodes" in report.refused["many nodes"]
    assert isinstance(report, Report)


def test_bits_are_compared_if_asked() -> None:
    rounded = returning(lambda y: np.nextafter(y, y.dtype.type(9)) if y.dtype == "float32" else y)
    assert not check_executor(rounded, only=["elementwise"], show=False).wrong
    assert not check_executor(rounded, only=["elementwise"], ulps=1, show=False).wrong
    assert check_executor(rounded, only=["elementwise"], ulps=0, show=False).wrong


def test_the_executor_is_gone_after_the_check(capsys: pytest.CaptureFixture[str]) -> None:
    check_executor(silent, only=["sums"])
    assert capsys.readouterr().out.startswith("executor 'silent': 1 checks in 0 s: 1 passed")
    assert not [name for name in gt.registry().executors if "testing" in name]
    with pytest.raises(LookupError, match="no plugin provides the executor 'plan'"):
        check_executor("plan")
    with pytest.raises(LookupError, match="there is no program 'sum'; there are: elementwise"):
        check_executor("plain", only=["sum"])
