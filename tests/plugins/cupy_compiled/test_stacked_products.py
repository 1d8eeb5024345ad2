"""Products of stacks of matrices and of vectors on CuPy, in compiled programs."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from comparing import Case, check, with_slopes

import gradtape as gt

SHAPES = [
    ((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)), ((2, 3, 4), (4,)), ((4,), (2, 4, 5)),
    ((2, 3, 4), (2, 4, 5)), ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)), ((2, 1, 3, 4), (6, 4, 1)),
    ((1, 3, 4), (2, 4, 5)), ((2, 6, 1, 4), (2, 1, 4, 5)), ((1, 1, 4), (1, 4, 1)),
]  # fmt: skip
EINSUMS = [
    "abc,cde->abde", "bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd", "ij,jk->ik", "ij,kj->ki", "bij,bjk->bik",
    "bij,bkj->bki", "ij,ij->", "i,j->ij", "abc,abc->ab", "bi,bj->bij",
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_products(either: Any, dtype: str) -> None:
    draw = np.random.default_rng(0)
    cases = []
    for x, y in SHAPES:
        given = tuple(draw.normal(size=shape).astype(dtype) for shape in (x, y))
        cases.append(Case(f"{x} {y}", gt.matmul, given))
        cases.append(Case(f"second {x} {y}", with_slopes(gt.matmul), given))
    check(either, cases)


def test_products_of_views(either: Any) -> None:
    draw = np.random.default_rng(1)
    x, y = draw.normal(size=(2, 3, 4)), draw.normal(size=(2, 5, 4))
    check(either, [
        Case("turned", lambda x, y: x @ y.mT, (x, y)),
        Case("back to front", lambda x, y: x[::-1] @ gt.transpose(y, (0, 2, 1))[:, ::-1], (x, y)),
        Case("after sums", lambda x, y: gt.exp(x - 1.0) @ (y * 2.0).mT, (x, y)),
    ])  # fmt: skip


def test_einsums(either: Any) -> None:
    draw, cases = np.random.default_rng(2), []
    sizes = dict(zip("abcdehijkq", (2, 3, 4, 5, 2, 3, 4, 3, 2, 5), strict=True))
    for subscripts in EINSUMS:
        terms = subscripts.partition("->")[0].split(",")
        given = tuple(draw.normal(size=[sizes[label] for label in term]) for term in terms)
        cases.append(Case(subscripts, partial(gt.einsum, subscripts), given))
    check(either, cases)
