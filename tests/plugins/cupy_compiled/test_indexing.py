"""Indices on CuPy, in compiled programs: values and gradients, also of what is out of range."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from comparing import Case, check, with_slopes

import gradtape as gt

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(5, 4, 3))
ROWS, PAIRS = np.array([4, 0, -1, 0, -5]), np.array([[1, -2], [0, 1]])
ALONG = DRAW.integers(-4, 4, (5, 6, 3))

INDEXED: dict[str, Callable[[Any], Any]] = {
    "take": lambda x: gt.take(x, ROWS, axis=0),
    "take within": lambda x: gt.take(x, PAIRS, axis=-2),
    "take of all": lambda x: gt.take(x, PAIRS * 7),
    "take of a view": lambda x: gt.take(gt.transpose(x)[::-1], PAIRS, axis=1) * 2.0,
    "embedding": lambda x: gt.tanh(gt.nn.embedding_lookup(x, gt.constant([[3, 1], [3, 0]]))),
    "along": lambda x: gt.take_along_axis(x, ALONG, axis=1),
    "along the first": lambda x: gt.take_along_axis(x, ALONG[:2, :4] % 5, axis=0),
    "along, broadcast": lambda x: (
        gt.take_along_axis(x, PAIRS[:, :1, None] % 3, axis=2)
        if x.shape[0] == 2
        else gt.take_along_axis(x, ALONG[:, :1, :2] % 3, axis=2)
    ),
    "array": lambda x: x[gt.constant(ROWS)],
    "array later": lambda x: x[1:, ::-2, gt.constant(PAIRS)],
    "arrays": lambda x: x[gt.constant(PAIRS), :, gt.constant([[0], [2]])],
    "arrays apart": lambda x: x[gt.constant([1, -1]), None, 2:0:-1, gt.constant([0, 2])],
    "arrays and an integer": lambda x: x[2, gt.constant(PAIRS)] + x[gt.constant([1]), 2, :],
    "small integers": lambda x: x[gt.constant(np.array([1, -1], "int8"))],
    "unsigned": lambda x: x[gt.constant(np.array([1, 4], "uint64")), gt.constant([0, 1])],
    "parts": lambda x: [x[1], x[..., 2], x[1:4:2, ::-1], x[-1, None, 0, 1]],
    "many parts": lambda x: sum(gt.sum(x[i]) * x[i, :, ::2] for i in range(5)),
    "set": lambda x: x.at[gt.constant([1, 0, 1])].set(x[gt.constant([2, 3, 4])] * 2.0),
    "set pairs": lambda x: x.at[gt.constant(PAIRS), 1:3].set(1.5),
    "set a part": lambda x: x.at[1:4:2, ..., -1].set(x[:2, :, 0]),
    "add": lambda x: x.at[gt.constant([1, 0, 1])].add(x[:3] * 2.0),
    "one hot": lambda x: gt.one_hot(gt.constant([[0, 2], [-1, 3]]), 3, dtype=x.dtype) * x[0, 0],
}


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_values_and_gradients(either: Any, dtype: str) -> None:
    check(either, [Case(name, f, (X.astype(dtype),)) for name, f in INDEXED.items()])


def test_gradients_of_gradients(either: Any) -> None:
    check(either, [Case(name, with_slopes(lambda x, f=f: f(gt.tanh(x)) if not isinstance(f(x), list)
                                          else [y * y for y in f(gt.tanh(x))]), (X,))
                   for name, f in INDEXED.items()])  # fmt: skip


def test_random_indices(either: Any) -> None:
    draw, cases = np.random.default_rng(3), []
    for number in range(16):
        rank = 1 + number % 4
        shape = tuple(draw.integers(1, 6, rank).tolist())
        x, parts, picked = draw.normal(size=shape), list[Any](), draw.integers(1, 4, 2).tolist()
        for n in shape[: draw.integers(1, rank + 1)]:
            way = draw.integers(4)
            if way == 0:
                parts.append(int(draw.integers(-n, n)))
            elif way == 1:
                step = int(draw.choice([-2, -1, 1, 2]))
                parts.append(slice(None, None, step))
            else:
                last = picked[draw.integers(2) :]
                parts.append(gt.constant(draw.integers(-n, n, last)))
        for place in range(len(parts) + 1):
            if draw.integers(5) == 0:
                parts.insert(place, None)
        where = tuple(parts)
        cases.append(Case(f"{shape} {where}", lambda x, where=where: x[where] * 2.0, (x,)))
    check(either, cases)


WRONG: dict[str, Callable[..., Any]] = {
    "take": lambda x, i: gt.take(x, i, axis=0),
    "take of all": gt.take,
    "along": lambda x, i: gt.take_along_axis(x, i[:, None, None], axis=0),
    "getitem": lambda x, i: x[i],
    "getitem later": lambda x, i: x[:, i % 3, i],
    "set": lambda x, i: x.at[i].set(x[:4]),
}


@pytest.mark.parametrize("dtype", ["float32", "int16", "uint8", "bool"])
def test_indices_out_of_range_are_as_node_by_node(either: Any, dtype: str) -> None:
    x = (X * 50).astype(dtype)
    for name, f in WRONG.items():
        indices = np.array([1, 60, -61, 0])
        slopes = with_slopes(f) if dtype == "float32" else lambda *xs, f=f: [f(*xs)]
        with gt.backend("cupy"):
            given = gt.constant(x), gt.constant(indices)
            by_node = [y.numpy() for y in slopes(*given)]
            with gt.executor("cuda_graphs"):
                found = [y.numpy() for y in gt.function(slopes)(*given)]
        for mine, right in zip(found, by_node, strict=True):
            np.testing.assert_allclose(mine, right, err_msg=f"{name} {dtype}", rtol=1e-5)


def test_integers_move_as_they_are(either: Any) -> None:
    x = DRAW.integers(-99, 99, (6, 3)).astype("int64") * 2**40 + 1
    where = np.array([5, 0, 0, -1])
    check(either, [
        Case("take", lambda x: gt.take(x, where, axis=0), (x,)),
        Case("half", lambda x: x[gt.constant(where)], (x.astype("int8"),)),
        Case("set", lambda x: x.at[gt.constant(where)].set(x[:4]), (x,)),
    ])  # fmt: skip


def test_a_table_of_many_rows_has_its_gradient(either: Any) -> None:
    draw = np.random.default_rng(5)
    table, ids = draw.normal(size=(30000, 9)), draw.integers(-30000, 30000, (40, 30))
    ids[:, ::3] = 7
    lookup = partial(gt.nn.embedding_lookup, ids=ids)
    cases = [Case(dtype, lookup, (table.astype(dtype),)) for dtype in ("float64", "float16")]
    later = gt.constant(ids % 30000)
    cases.append(Case("later", lambda x: x[::-1, later], (table.T[:9],)))
    check(either, cases)


def test_too_many_indices_remain_calls(either: Any) -> None:
    rows = gt.constant(DRAW.integers(0, 200, (300, 20)))
    x = DRAW.normal(size=(250, 300))
    check(either, [Case("pairs", lambda x: x[rows, rows + 9], (x,), "index_add_like")])
