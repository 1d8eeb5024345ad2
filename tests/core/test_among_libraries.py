"""Tensors among Python's own types and other libraries: operators, results, numbers, copies."""

from __future__ import annotations

import array
import asyncio
import bisect
import collections
import concurrent.futures
import copy
import dataclasses
import datetime
import decimal
import fractions
import functools
import heapq
import inspect
import itertools
import json
import logging
import math
import operator
import pickle
import random
import statistics
import struct
import types
import typing
import unittest.mock
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt

LINE = np.array([0.25, 0.5, 0.25])
T, V = gt.constant(LINE), gt.Variable(LINE)
NUMBER, INTEGER = gt.constant(2.5), gt.constant(3)
SCALE = gt.Variable(2.0)

# -- operators that belong to the other operand ----------------------------------------------------

CLOSE: dict[str, tuple[Callable[[], Any], bool]] = {
    "list": (lambda: pytest.approx([0.25, 0.5, 0.25]) == T, True),
    "list first": (lambda: pytest.approx([0.25, 0.5, 0.25]) == T, True),
    "other list": (lambda: pytest.approx([0.25, 0.5, 0.3]) == T, False),
    "another length": (lambda: pytest.approx([0.25, 0.5]) == T, False),
    "array": (lambda: pytest.approx(LINE) == T, True),
    "tensor": (lambda: pytest.approx(T) == V, True),
    "variable": (lambda: pytest.approx(LINE) == V, True),
    "array and tensor": (lambda: pytest.approx(T) == LINE, True),
    "matrix": (lambda: gt.ones((2, 2)) == pytest.approx(np.ones((2, 2))), True),
    "number": (lambda: pytest.approx(2.5) == NUMBER, True),
    "number first": (lambda: pytest.approx(2.5) == NUMBER, True),
    "other number": (lambda: pytest.approx(2.6) == NUMBER, False),
    "tolerance": (lambda: pytest.approx(2.6, abs=0.2) == NUMBER, True),
    "number of a tensor": (lambda: pytest.approx(NUMBER) == 2.5, True),
    "all equal": (lambda: gt.ones(3) == pytest.approx(1.0), True),
    "not all equal": (lambda: pytest.approx(0.25) == T, False),
    "not equal": (lambda: pytest.approx(LINE) != T, False),
    "nan": (lambda: gt.constant([math.nan]) == pytest.approx([math.nan], nan_ok=True), True),
    "list of tensors": (lambda: pytest.approx([2.5, 2.5]) == [NUMBER, NUMBER], True),
    "dictionary": (lambda: pytest.approx({"a": 2.5}) == {"a": NUMBER}, True),
    "complex": (lambda: gt.constant(1 + 1j) == pytest.approx(1 + 1j), True),
    "mock": (lambda: unittest.mock.ANY == T and unittest.mock.ANY == T, True),
    "mock second": (lambda: operator.eq(T, unittest.mock.ANY), True),
    "None": (lambda: T == None, False),  # noqa: E711
}


@pytest.mark.parametrize("name", CLOSE)
def test_a_comparison_belongs_to_who_knows_how(name: str) -> None:
    compare, expected = CLOSE[name]
    assert compare() is expected
    with gt.GradientTape(), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compare() is expected


class Unit:
    """A unit of measurement, which multiplies any number."""

    def __rmul__(self, other: Any) -> Any:
        return ("m", other)

    def __rtruediv__(self, other: Any) -> Any:
        return NotImplemented

    def __radd__(self, other: Any) -> Any:
        raise TypeError("a unit is no length")

    __rmatmul__ = __rpow__ = __rand__ = __gt__ = __rmul__


def test_other_operators_belong_to_the_other_operand() -> None:
    unit = Unit()
    for x in (T, V):
        results = [x * unit, x @ unit, x**unit, x & unit, x < unit]
        assert all(result[0] == "m" and result[1] is x for result in results)
        for refused in (operator.truediv, operator.add, operator.sub):
            with pytest.raises(TypeError, match="a tensor holds numbers, not Unit"):
                refused(x, unit)
        with pytest.raises(TypeError, match="a tensor holds numbers, not Unit"):
            unit * x
        for other in (object(), {}, {1}, type, len):
            with pytest.raises(TypeError, match="equal: argument 'y': a tensor holds numbers"):
                operator.eq(x, other)
        with pytest.raises(TypeError, match="a tensor holds numbers, not str"):
            operator.mul(x, "words")


@pytest.mark.parametrize("number", [fractions.Fraction(1, 2), decimal.Decimal("0.5")])
def test_exact_numbers_are_to_be_converted(number: Any) -> None:
    for use in (gt.constant, lambda x: x * T, lambda x: T * x):
        with pytest.raises(TypeError, match=r"convert it with float\(x\)"):
            use(number)
    with pytest.raises(TypeError, match=r"others by float\(x\)"):
        gt.constant([number, 1.0])


def test_sparse_matrices_multiply_values() -> None:
    sparse = pytest.importorskip("scipy.sparse", reason="pip install scipy")
    matrix = sparse.csr_array(np.diag([1.0, 2.0, 3.0]))
    for multiply in (lambda: V @ matrix, lambda: matrix @ V):
        with gt.GradientTape() as tape:
            result = multiply()
            y = gt.sum(result)
        assert type(result) is np.ndarray
        np.testing.assert_array_equal(result, LINE * [1.0, 2.0, 3.0])
        with pytest.warns(gt.errors.BrokenPathWarning, match="test_among_libraries.py"):
            assert tape.gradient(y, V) is None
        with pytest.raises(TypeError, match=r"pass x\.toarray\(\)"):
            gt.function(lambda x: x @ matrix)(T)
    for use in (gt.constant, gt.sin, lambda x: T + x):
        with pytest.raises(TypeError, match=r"pass x\.toarray\(\)"):
            use(matrix)


def test_symbols_take_the_value() -> None:
    sympy = pytest.importorskip("sympy", reason="pip install sympy")
    x = sympy.Symbol("x")
    assert (NUMBER * x).subs(x, 2.0) == (x * NUMBER).subs(x, 2.0) == 5.0
    assert sympy.lambdify(x, x**2, "numpy")(T).tolist() == (LINE**2).tolist()


# -- containers that are not walked ----------------------------------------------------------------


@dataclasses.dataclass
class Parameters:
    w: Any
    b: Any = 0.0


class Pair(typing.NamedTuple):
    w: Any
    b: Any


def loss(p: Any) -> Any:
    return gt.sum(p.w**2) + p.b


def test_a_named_tuple_is_walked_and_a_dataclass_is_refused() -> None:
    found = gt.grad(loss)(Pair(T, NUMBER))
    assert found.w.tolist() == (2 * LINE).tolist()
    assert found.b.item() == 1.0
    plain = gt.grad(lambda p: loss(types.SimpleNamespace(**p)))(vars(Parameters(T, NUMBER)))
    assert plain["w"].tolist() == found.w.tolist()
    for use in (gt.grad(loss), gt.vmap(loss), gt.function(loss), gt.constant):
        with pytest.raises(TypeError, match=r"instead of a dataclass, pass vars\(x\), or make it"):
            use(Parameters(T, NUMBER))
    with pytest.raises(TypeError, match="convert each of its values"):
        gt.grad(loss)(types.MappingProxyType({"w": T}))


HOLDERS: dict[str, Callable[[Any], Any]] = {
    "dataclass": lambda x: Parameters(x * 2.0),
    "list in a dataclass": lambda x: Parameters([x * 2.0]),
    "namespace": lambda x: types.SimpleNamespace(w=x * 2.0),
    "set": lambda x: {x * 2.0},
    "deque": lambda x: collections.deque([x * 2.0]),
    "UserDict": lambda x: collections.UserDict(a=x * 2.0),
    "mapping": lambda x: types.MappingProxyType({"a": x * 2.0}),
    "generator": lambda x: (y * 2.0 for y in [x]),
    "map": lambda x: map(gt.sin, [x]),
}


@pytest.mark.parametrize("name", HOLDERS)
def test_a_traced_function_returns_no_tensors_without_values(name: str) -> None:
    with pytest.raises(gt.errors.TraceError, match=r"it returns a .*; return tensors in a tuple"):
        gt.function(HOLDERS[name])(T)
    assert HOLDERS[name](T) is not None


JOINED: dict[str, Callable[[Any], Any]] = {
    "deque": lambda x: collections.deque([x * 2.0]),
    "UserList": lambda x: collections.UserList([x * 2.0]),
    "objects": lambda x: np.array([x * 2.0, None], object)[:1],
}


@pytest.mark.parametrize("name", JOINED)
def test_a_container_that_becomes_a_tensor_keeps_gradients(name: str) -> None:
    f = JOINED[name]
    x, ones = gt.constant([1.0, 2.0, 3.0]), gt.ones(3)
    assert gt.grad(lambda x: gt.sum(f(x)))(x).tolist() == [2.0] * 3
    assert gt.grad(lambda x: gt.sum(gt.grad(lambda y: gt.sum(gt.add(f(y), 0.0) ** 2))(x)))(
        x
    ).tolist() == pytest.approx([8.0] * 3)
    assert gt.jvp(f, (x,), (ones,))[1].tolist() == [[2.0] * 3]
    assert gt.vjp(f, x)[1](gt.ones((1, 3)))[0].tolist() == [2.0] * 3
    assert gt.linearize(f, x)[1](ones).tolist() == [[2.0] * 3]
    assert gt.jacfwd(f)(x).tolist() == [np.diag([2.0] * 3).tolist()]


# -- Python's numbers ------------------------------------------------------------------------------


def test_a_format_is_for_one_number() -> None:
    assert f"{NUMBER:.3f} {SCALE:5.1f} {INTEGER:d}" == "2.500   2.0 3"
    assert format(T) == str(T)
    for x in (T, V, gt.ones((1, 1)), gt.zeros(0)):
        with pytest.raises(TypeError, match=r"format '\.3f' is for a number.*np\.array2string"):
            format(x, ".3f")
    with pytest.raises(TypeError, match="only 0-dimensional"):
        "%f" % T  # noqa: UP031


LARGE = 2**53 + 1


@pytest.mark.parametrize("rounded", [math.trunc, math.floor, math.ceil])
@pytest.mark.parametrize("value", [2.5, -2.5, LARGE, 3, 1e30])
def test_rounding_to_an_integer_is_exact(rounded: Any, value: Any) -> None:
    for x in (gt.constant(value, "float64" if type(value) is float else "int64"),):
        for one in (x, gt.Variable(x)):
            assert rounded(one) == rounded(value)
            assert type(rounded(one)) is int
    with pytest.raises(TypeError, match="complex64 tensor is not a real number"):
        rounded(gt.constant(1j))
    with pytest.raises(gt.errors.TraceError):
        gt.function(lambda x: x * rounded(x))(NUMBER)


def test_what_is_no_integer_says_what_to_pass() -> None:
    for use in (range, operator.index, chr, lambda x: struct.pack("i", x), lambda x: [1, 2][x]):
        with pytest.raises(TypeError, match=r"astype\('int64'\), or pass x\.item\(\)"):
            use(NUMBER)


# Each sees the elements, or one number.
READERS: dict[str, Callable[[Any], Any]] = {
    "sum": sum,
    "sorted": sorted,
    "min": min,
    "max": max,
    "any": any,
    "all": all,
    "list": list,
    "reversed": lambda x: list(reversed(x)),
    "unpack": lambda x: [*x],
    "zip": lambda x: [a * b for a, b in zip(x, x, strict=True)],
    "map": lambda x: list(map(float, x)),
    "filter": lambda x: list(filter(lambda one: one > 0.3, x)),
    "in": lambda x: 0.5 in x,
    "reduce": lambda x: functools.reduce(operator.mul, x),
    "accumulate": lambda x: list(itertools.accumulate(x)),
    "pairwise": lambda x: [b - a for a, b in itertools.pairwise(x)],
    "prod": math.prod,
    "fsum": math.fsum,
    "dist": lambda x: math.dist(x, x),
    "hypot": lambda x: math.hypot(*x),
    "fmean": statistics.fmean,
    "median": statistics.median,
    "bisect": lambda x: bisect.bisect(sorted(x), 0.3),
    "heapq": lambda x: heapq.nlargest(2, x),
    "choice": lambda x: random.Random(0).choice(x),
    "choices": lambda x: random.Random(0).choices("abc", weights=x, k=5),
    "uniform": lambda x: random.Random(0).uniform(0.0, x[1]),
    "struct": lambda x: struct.pack("3d", *x),
    "array": lambda x: array.array("d", x).tolist(),
    "json": lambda x: json.dumps(x, default=lambda one: one.tolist()),
    "log": lambda x: logging.makeLogRecord({"msg": "%.3f", "args": (x[1],)}).getMessage(),
    "isclose": lambda x: math.isclose(x[1], 0.5),
    "round": lambda x: round(x[1], 1),
    "divmod": lambda x: divmod(x[1], 0.2),
    "index": lambda x: [1, 2, 3][np.argmax(x)],
    "range": lambda x: list(range(np.argmax(x))),
    "slice": lambda x: "abc"[: np.argmax(x)],
    "bytes": lambda x: bytes(np.argmax(x)),
    "size": lambda x: np.zeros(np.argmax(x)).shape,
}


@pytest.mark.parametrize("name", READERS)
def test_python_reads_tensors_as_it_reads_arrays(name: str) -> None:
    read = READERS[name]
    for x in (T, V):
        assert np.array_equal(read(x), read(LINE))


def test_what_python_asks_of_types() -> None:
    kinds = collections.abc
    for x in (T, V):
        assert isinstance(x, (kinds.Sized, kinds.Iterable, kinds.Container, kinds.Hashable))
        assert not isinstance(x, kinds.Sequence)
        assert not callable(x)
        assert weakref.ref(x)() is x
        assert len({x, x}) == 1
        match x:
            case [*_]:
                raise AssertionError("a tensor is no sequence")
            case gt.Tensor(shape=(3,)) | gt.Variable(shape=(3,)):
                pass
        with pytest.raises(TypeError, match="not JSON serializable"):
            json.dumps(x)
    assert inspect.signature(gt.function(lambda x, y=1: x)).parameters.keys() == {"x", "y"}
    with pytest.raises(TypeError, match="difference of dates"):
        operator.mul(NUMBER, datetime.timedelta(1))


# -- copies, processes and threads -----------------------------------------------------------------

ARRAYS = {
    "strided": np.arange(12.0).reshape(3, 4)[::2, ::-1].T,
    "empty": np.zeros((0, 3), np.float32),
    "number": np.float16(1.5),
    "complex": np.array([1 + 2j, np.nan], np.complex64),
    "bool": np.array([True, False]),
    "large integers": np.array([2**63 - 1, -(2**63)]),
    "unsigned": np.array([2**64 - 1], np.uint64),
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_of_every_protocol_have_the_values(name: str, protocol: int) -> None:
    x = gt.constant(ARRAYS[name])
    v = gt.Variable(x, trainable=False)
    y, w, again, same = pickle.loads(pickle.dumps((x, v, x, v), protocol))
    assert again is y
    assert same is w
    assert not w.trainable
    for found in (y, w):
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found.numpy(), ARRAYS[name])


def test_copies_share_what_was_shared() -> None:
    shared = gt.layers.Dense(3)
    model = gt.layers.Sequential([shared, shared])
    model(gt.ones((1, 3)))
    held = {"model": model, "kernel": shared.kernel, "t": T}
    for twin in (copy.deepcopy(held), pickle.loads(pickle.dumps(held))):
        first, second = twin["model"].layers
        assert first is second
        assert first is not shared
        assert twin["kernel"] is first.kernel
        assert len(twin["model"].variables) == 2
    assert copy.copy(T) is copy.deepcopy(T) is T
    assert dataclasses.replace(Parameters(V, T), b=NUMBER).w is V


def squares(x: Any) -> float:
    return float(gt.sum(x * x))


def test_a_new_process_gets_tensors_and_models() -> None:
    import multiprocessing

    layer = gt.layers.Dense(2, kernel_initializer="ones")
    layer(gt.ones((1, 3)))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(squares, [T, V]) == [squares(T)] * 2
        assert pool.apply(layer, (gt.ones((1, 3)),)).tolist() == [[3.0, 3.0]]


def test_tasks_have_tapes_of_their_own() -> None:
    async def slope(factor: float) -> list[float]:
        with gt.GradientTape() as tape:
            y = V * factor
            await asyncio.sleep(0)
            z = gt.sum(y)
        return tape.gradient(z, V).tolist()

    async def both() -> list[list[float]]:
        return await asyncio.gather(slope(1.0), slope(2.0))

    assert asyncio.run(both()) == [[1.0] * 3, [2.0] * 3]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert list(pool.map(squares, [T, V])) == [squares(T)] * 2


# -- pictures --------------------------------------------------------------------------------------


def test_matplotlib_draws_what_a_tape_follows() -> None:
    plt = pytest.importorskip("matplotlib.pyplot", reason="pip install matplotlib")
    figure, axes = plt.subplots()
    with gt.GradientTape() as tape, warnings.catch_warnings():
        warnings.simplefilter("error")
        y = V * 2.0
        axes.plot(y, V)
        axes.scatter(y, y, c=y, s=y)
        axes.bar(y, V)
        axes.hist(y)
        axes.fill_between(y, V)
        axes.errorbar(y, y, yerr=y)
        axes.imshow(gt.stack([y, y]))
        axes.axhline(y[0])
        axes.set_xlim(-y[1], y[1])
        figure.canvas.draw()
        z = gt.sum(y)
        assert tape.gradient(z, V).tolist() == [2.0] * 3
    plt.close(figure)
