"""Errors name the function that was called, and are of the type that NumPy raises."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt

V, W, Z = np.arange(3.0), np.arange(6.0).reshape(2, 3), np.arange(24.0).reshape(2, 3, 4)
C = V + 1j

# name -> calls that NumPy refuses; n is numpy or gradtape, and a makes its array
WRONG: dict[str, list[Callable[[Any, Any], Any]]] = {
    "dot": [lambda n, a: n.dot(a(V), a(V[:2])), lambda n, a: n.dot(a(Z), a(Z))],
    "inner": [lambda n, a: n.inner(a(V), a(V[:2]))],
    "vdot": [lambda n, a: n.vdot(a(V), a(V[:2]))],
    "vecdot": [lambda n, a: n.vecdot(a(V), a(V[:2])), lambda n, a: n.vecdot(a(V), a(V), axis=4)],
    "tensordot": [lambda n, a: n.tensordot(a(W), a(W)[:, :2]), lambda n, a: n.tensordot(a(V), 5)],
    "kron": [lambda n, a: n.kron(a(V), None)],
    "cross": [lambda n, a: n.cross(a(V), np.ones(4))],
    "trace": [lambda n, a: n.trace(a(V)), lambda n, a: n.trace(a(W), 0, 0, 5)],
    "diagonal": [lambda n, a: n.diagonal(a(V)), lambda n, a: n.diagonal(a(W), "a")],
    "diag": [lambda n, a: n.diag(a(Z)), lambda n, a: n.diag(a(V), 1.5)],
    "hstack": [lambda n, a: n.hstack([a(W), a(Z)]), lambda n, a: n.hstack([])],
    "vstack": [lambda n, a: n.vstack([a(W), a(V[:2])]), lambda n, a: n.vstack([])],
    "dstack": [lambda n, a: n.dstack([a(W), a(V)])],
    "column_stack": [lambda n, a: n.column_stack([a(V), a(W)])],
    "append": [lambda n, a: n.append(a(W), a(V), axis=0)],
    "ptp": [lambda n, a: n.ptp(a(V), axis=3), lambda n, a: n.ptp(a(V[:0]))],
    "nanmax": [lambda n, a: n.nanmax(a(V), axis=3), lambda n, a: n.nanmax(a(V[:0]))],
    "nanmin": [lambda n, a: n.nanmin(a(V), axis=3)],
    "nansum": [lambda n, a: n.nansum(a(V), axis=(0, 0))],
    "nanmean": [lambda n, a: n.nanmean(a(V), axis=3)],
    "median": [lambda n, a: n.median(a(V), axis=3)],
    "quantile": [
        lambda n, a: n.quantile(a(V), 0.5, method="nope"),
        lambda n, a: n.quantile(a(V), 2.0),
        lambda n, a: n.quantile(a(C), 0.5),
    ],
    "nanquantile": [lambda n, a: n.nanquantile(a(V), 0.5, method="nope")],
    "percentile": [lambda n, a: n.percentile(a(V), 101.0)],
    "trapezoid": [
        lambda n, a: n.trapezoid(a(V), np.arange(5.0)),
        lambda n, a: n.trapezoid(a(V), axis=2),
    ],
    "average": [
        lambda n, a: n.average(a(V), weights=a(V * 0)),
        lambda n, a: n.average(a(W), weights=a(V)),
        lambda n, a: n.average(a(W), axis=0, weights=a(V)),
    ],
    "gradient": [lambda n, a: n.gradient(a(V[:1])), lambda n, a: n.gradient(a(V), axis=2)],
    "diff": [lambda n, a: n.diff(a(V), axis=3), lambda n, a: n.diff(a(V), n=-1)],
    "compress": [lambda n, a: n.compress([0, 0, 0, 1], a(V))],
    "choose": [lambda n, a: n.choose(a(V), [a(V), a(V)])],
    "searchsorted": [lambda n, a: n.searchsorted(a(V), 1.0, side=3)],
    "take": [lambda n, a: n.take(a(V), 9), lambda n, a: n.take(a(V), a(V))],
    "where": [lambda n, a: n.where(a(V) > 0, a(V))],
    "clip": [lambda n, a: n.clip(a(V), a(V[:2]), 1.0)],
    "round": [lambda n, a: n.round(a(V), "a")],
    "concatenate": [lambda n, a: n.concatenate([a(V), a(W)]), lambda n, a: n.concatenate(5.0)],
    "stack": [lambda n, a: n.stack([a(V), a(W)])],
    "cumsum": [lambda n, a: n.cumsum(a(V), axis=2)],
    "rot90": [lambda n, a: n.rot90(a(V))],
    "fliplr": [lambda n, a: n.fliplr(a(V))],
    "array_split": [lambda n, a: n.array_split(a(V), 0)],
    "tril": [lambda n, a: n.tril(a(W), "a"), lambda n, a: n.tril(a(W)[0, 0])],
    "pad": [lambda n, a: n.pad(a(V), 1.5), lambda n, a: n.pad(a(V), -1)],
    "zeros": [lambda n, a: n.zeros((-1,))],
    "ones": [lambda n, a: n.ones("a")],
    "eye": [lambda n, a: n.eye("a"), lambda n, a: n.eye(-1)],
    "full": [lambda n, a: n.full((-1,), 2.0), lambda n, a: n.full((2,), a(V))],
    "linspace": [lambda n, a: n.linspace(0, 1, -1), lambda n, a: n.linspace(0, 1, 2.5)],
    "arange": [lambda n, a: n.arange("a"), lambda n, a: n.arange(0, 1, 0)],
    "isposinf": [lambda n, a: n.isposinf(a(C))],
    "norm": [lambda n, a: n.linalg.norm(a(W), "nope"), lambda n, a: n.linalg.norm(a(V), axis=3)],
    "matrix_norm": [lambda n, a: n.linalg.matrix_norm(a(W), ord=7)],
    "vector_norm": [lambda n, a: n.linalg.vector_norm(a(W), axis=5)],
    "cond": [lambda n, a: n.linalg.cond(a(V))],
    "multi_dot": [lambda n, a: n.linalg.multi_dot([a(W), a(W)])],
    "solve": [lambda n, a: n.linalg.solve(np.eye(3), a(V[:2])), lambda n, a: n.linalg.solve(W, V)],
    "svdvals": [lambda n, a: n.linalg.svdvals(a(V))],
    "fft2": [lambda n, a: n.fft.fft2(a(V))],
    "ifft2": [lambda n, a: n.fft.ifft2(a(W), axes=(0, 7))],
    "rfft2": [lambda n, a: n.fft.rfft2(a(V))],
    "fftshift": [lambda n, a: n.fft.fftshift(a(V), axes=4)],
}


@pytest.mark.parametrize("name", WRONG)
def test_the_function_called_is_named_and_the_type_is_numpys(name: str) -> None:
    for call in WRONG[name]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(Exception) as theirs:  # noqa: PT011 - whatever NumPy raises
                call(np, np.asarray)
            with pytest.raises(theirs.type, match=rf"^{name}\b"):
                call(gt, gt.constant)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("dot", lambda x: gt.dot(x, x[:2])),
        ("inner", lambda x: gt.inner(x, x[:2])),
        ("diagonal", lambda x: gt.diagonal(x)),
        ("hstack", lambda x: gt.hstack([x, gt.ones((2, 2))])),
        ("ptp", lambda x: gt.ptp(x, axis=3)),
        ("cond", lambda x: gt.linalg.cond(x)),
        ("vector_norm", lambda x: gt.linalg.vector_norm(x, axis=3)),
        ("fft2", lambda x: gt.fft.fft2(x)),
    ],
)
def test_a_trace_names_it_too(name: str, call: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match=rf"^{name}: "):
        gt.function(call)(gt.constant(V))


def test_an_error_is_told_once() -> None:
    with pytest.raises(ValueError, match=r"^ptp: ") as caught:
        gt.ptp(gt.constant(V), axis=3)
    assert "max" not in str(caught.value)
    assert caught.value.__cause__ is None or "ptp" not in str(caught.value.__cause__)
