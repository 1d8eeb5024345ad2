"""What calls against NumPy found: values that were wrong, and errors that named nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt

t = gt.constant
SAME: dict[str, Callable[[Any, Any], Any]] = {
    "polydiv by a complex polynomial": lambda xp, a: xp.polydiv(a([1, 0]), a([2j]))[0],
    "density of complex weights": lambda xp, a: xp.histogram(
        a([0.0, 1.0]), 2, weights=a([1j, 2.0]), density=True
    )[0],
    "clip to a number beside float64": lambda xp, a: xp.clip(
        a(np.zeros(1, "float32")), 3.7, a([10.0])
    ),
    "power of two Python numbers": lambda xp, a: xp.power(False, 2),
    "select among a number and int8": lambda xp, a: xp.select(
        [a([True, False])], [30], a(np.array([1, 2], "int8"))
    ),
    "cov in half precision": lambda xp, a: xp.cov(a([0.0, 1.0]), dtype="float16"),
    "piecewise on leading axes": lambda xp, a: xp.piecewise(
        a([[1, 2], [3, 4]]), [a([True, False])], [5, 7]
    ),
    "lexsort of numbers": lambda xp, a: xp.lexsort(a([2.0, 1.0])),
    "linspace of unsigned integers: retstep": lambda xp, a: (
        xp.linspace(a(np.float32(1)), a(np.float32(0)), 3, retstep=True)[1]
        if xp is np
        else xp.linspace(a(np.uint8(1)), a(np.uint8(0)), 3, retstep=True)[1].astype("float32")
    ),
    "linspace of booleans: retstep": lambda xp, a: xp.linspace(a(False), a(True), 3, retstep=True)[
        1
    ],
    "arange without a step": lambda xp, a: xp.arange(0, 3, step=None),
}


@pytest.mark.parametrize("call", SAME.values(), ids=SAME)
def test_a_call_gives_what_numpy_gives(call: Callable[[Any, Any], Any]) -> None:
    theirs, ours = call(np, np.asarray), call(gt, lambda x: t(np.asarray(x)))
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


REFUSED: dict[str, tuple[type[Exception], Callable[[], Any]]] = {
    "piecewise": (IndexError, lambda: gt.piecewise(t([1, 2]), [t([True])], [5])),
    "cov": (TypeError, lambda: gt.cov(t([1.0, 2.0]), dtype="int16")),
    "cov: complex": (TypeError, lambda: gt.cov(t([1j, 2.0]), dtype="float32")),
    "argsort": (TypeError, lambda: gt.argsort(t([1.0]), kind=0)),
    "np.sort": (TypeError, lambda: np.sort(t([1.0]), order="C")),
    "size": (np.exceptions.AxisError, lambda: gt.size(t(1.0), 0)),
    "trim_zeros": (TypeError, lambda: gt.trim_zeros(t([1.0]), 0)),
    "trim_zeros: axis": (np.exceptions.AxisError, lambda: gt.trim_zeros(t(1.0), axis=0)),
    "reshape": (TypeError, lambda: gt.reshape(t([1.0]), (1,), 0)),
    "copy": (ValueError, lambda: t([1.0]).copy("no such")),
    "array": (TypeError, lambda: gt.array([1.0], order=0)),
    "astype": (TypeError, lambda: t([1.0]).astype("int8", casting=0)),
    "round": (TypeError, lambda: t([1.0]).round(0.0)),
    "quantile": (TypeError, lambda: gt.quantile(t([1j]), 2.0)),
    "linspace": (TypeError, lambda: gt.linspace(t(0.0), t(1j), 3, dtype="int8")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_call_is_refused_by_name(name: str) -> None:
    kind, call = REFUSED[name]
    with pytest.raises(kind, match=name.partition(":")[0].removeprefix("np.")):
        call()


def test_a_quantile_is_exact_at_either_end_of_far_numbers() -> None:
    for q in ([0.0, 1.0], [1.0, 1.0]):
        x = np.array([2.0, -1e200])
        assert gt.quantile(gt.constant(x), gt.constant(np.array(q))).tolist() == [
            *np.quantile(x, q)
        ]
    found = gt.interp(
        gt.constant(np.array([0.0, 1.0 - 1e-16])), [0.0, 1.0], np.array([-1e200, 2.0])
    )
    assert found.tolist()[0] == -1e200


def test_a_quantile_is_an_infinite_element_only_where_it_is_one() -> None:
    x = np.array([0.0, -np.inf])
    for quantile in (gt.quantile, gt.nanquantile):
        found = [quantile(gt.constant(x), gt.constant(np.array(q))).item() for q in (0.0, 0.5, 1.0)]
        assert found == [-np.inf, -np.inf, 0.0]


def test_axes_may_be_transformed_twice() -> None:
    x = np.array([[0.0, 1.0, 5.0], [2.0, 3.0, -1.0]])
    found = gt.fft.rfftn(gt.constant(x), axes=(1, 0, 1))
    np.testing.assert_allclose(found.numpy(), np.fft.rfftn(x, axes=(1, 0, 1)))
