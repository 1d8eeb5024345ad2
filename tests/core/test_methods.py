"""NumPy's methods and functions on tensors and variables: same values, same gradients."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as gt

X = np.random.default_rng(0).standard_normal((3, 3))
WHOLE = np.array([[3, 0, 2], [0, 1, 5]])

METHODS = {
    "prod": lambda x: x.prod(axis=0),
    "var": lambda x: x.var(axis=1, ddof=1),
    "std": lambda x: x.std(),
    "cumsum": lambda x: x.cumsum(axis=1),
    "cumprod": lambda x: x.cumprod(),
    "trace": lambda x: x.trace(1),
    "dot": lambda x: x.dot(np.ones(3)),
    "ravel": lambda x: x.ravel(),
    "flatten": lambda x: x.flatten(),
    "squeeze": lambda x: x[:, None].squeeze(1),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "mT": lambda x: x[None].mT,
    "take": lambda x: x.take([0, 0], axis=1),
    "compress": lambda x: x.compress([True, False, True], axis=0),
    "repeat": lambda x: x.repeat([1, 0, 2], axis=0),
    "ptp": lambda x: np.ptp(x, axis=1) if isinstance(x, np.ndarray) else x.ptp(axis=1),
    "diagonal": lambda x: x.diagonal(-1),
    "clip": lambda x: x.clip(-0.5, 0.5),
    "real": lambda x: x.real,
    "imag": lambda x: x.imag,
    "conj": lambda x: x.conj(),
    "conjugate": lambda x: x.conjugate(),
}
WITHOUT_GRADIENT = {
    "any": lambda x: x.any(axis=0),
    "all": lambda x: x.all(axis=1),
    "argmax": lambda x: x.argmax(axis=1),
    "argmin": lambda x: x.argmin(),
    "argsort": lambda x: x.argsort(axis=0),
    "nonzero": lambda x: x.nonzero()[1],
    "round": lambda x: x.round(),
    "searchsorted": lambda x: x[0].searchsorted([1, 2], "right"),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_numpys_and_followed_by_tapes(name):
    method, x, v = METHODS[name], gt.constant(X), gt.Variable(X)
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y, z = method(x), method(v)
    np.testing.assert_allclose(y.numpy(), method(X), rtol=1e-12)
    np.testing.assert_array_equal(z.numpy(), y.numpy())
    assert tape.gradient(y, x).shape == tape.gradient(z, v).shape == (3, 3)
    np.testing.assert_array_equal(gt.function(method)(x).numpy(), y.numpy())


@pytest.mark.parametrize("name", WITHOUT_GRADIENT)
def test_methods_without_gradients(name):
    method = WITHOUT_GRADIENT[name]
    for x in (X, WHOLE):
        np.testing.assert_array_equal(method(gt.constant(x)).numpy(), method(x))


@pytest.mark.parametrize(
    "function",
    [
        np.radians,
        np.degrees,
        np.fabs,
        np.conjugate,
        np.isposinf,
        np.sinc,
        np.median,
        np.nan_to_num,
        np.fliplr,
        np.atleast_3d,
        lambda x: np.pad(x, 1, mode="reflect"),
        lambda x: np.hstack([x, x]),
        lambda x: np.partition(x, 1, axis=0)[1],
        lambda x: np.quantile(x, 0.3, axis=1),
        lambda x: np.select([x > 0], [x], -1.0),
        lambda x: np.where(x > 0, x, 0.0).std(),
    ],
)
def test_numpys_functions_reach_ours(function):
    np.testing.assert_allclose(function(gt.constant(X)).numpy(), function(X), rtol=1e-12)
    assert isinstance(function(gt.constant(X)), gt.Tensor)


def test_an_index_error_of_an_op_is_not_taken_for_a_missing_op():
    with (
        gt.GradientTape(),
        pytest.raises(TypeError, match=r"numpy\.isnat has no gradtape counterpart"),
    ):
        np.isnat(gt.constant(WHOLE))


def test_round_rounds_every_element():
    x = gt.constant(X)
    np.testing.assert_array_equal(round(x).numpy(), np.round(X))
    np.testing.assert_array_equal(round(x, 1).numpy(), np.round(X, 1))


@pytest.mark.parametrize(
    ("method", "instead"),
    [
        ("sort", "gradtape.sort"),
        ("partition", "gradtape.partition"),
        ("fill", "gradtape.full_like"),
        ("put", "set"),
        ("resize", "gradtape.resize"),
    ],
)
def test_methods_that_change_an_array_in_place_say_what_to_use(method, instead):
    with pytest.raises(TypeError, match=f"{method}: .*in place.*{instead}"):
        getattr(gt.constant(X), method)(1)


@pytest.mark.parametrize("make", [gt.constant, gt.Variable])
def test_methods_take_numpys_arguments(make):
    x = make(X)
    for change in (
        lambda x: x.ravel("C"),
        lambda x: x.flatten(order="C"),
        lambda x: x.reshape(1, 9, order="C"),
        lambda x: x.ravel("F"),
        lambda x: x.flatten(order="F"),
        lambda x: x.reshape(1, 9, order="F"),
        lambda x: x.reshape((9,), copy=True),
        lambda x: x.copy(order="F"),
        lambda x: x.cumsum(0, "complex128"),
        lambda x: x.cumprod(axis=1, dtype=np.complex128),
        lambda x: x.trace(0, 1, 0, dtype="complex128"),
        lambda x: x.take([0, 9], axis=0, mode="clip"),
        lambda x: x.astype("float32", copy=False),
        lambda x: x.astype("float32", "K", "same_kind"),
        lambda x: x.astype(np.complex64, casting="unsafe", order="C"),
    ):
        result = change(x).numpy()
        np.testing.assert_array_equal(result, change(X))
        assert result.dtype == change(X).dtype


@pytest.mark.parametrize("order", ["A", "K", "Q"])
@pytest.mark.parametrize("method", ["ravel", "flatten", "reshape"])
def test_another_order_is_refused_by_name(method, order):
    args = ((9,),) if method == "reshape" else ()
    function = "reshape" if method == "reshape" else "ravel"
    with pytest.raises(ValueError, match=rf"{function}: order.*'{order}'"):
        getattr(gt.constant(X), method)(*args, order=order)


def test_astype_names_what_it_cannot_do():
    with pytest.raises(TypeError, match="astype: 'foo' is not a dtype"):
        gt.constant(X).astype("foo")
    with pytest.raises(TypeError, match=r"astype: float64 cannot be cast to int32.*'safe'"):
        gt.constant(X).astype("int32", casting="safe")


def test_messages_on_arguments_name_the_tensors_method():
    with pytest.raises(TypeError, match=r"^Tensor\.swapaxes\(\)"):
        gt.constant(X).swapaxes(0, 1, 2)
    with pytest.raises(TypeError, match=r"^Tensor\.__add__\(\)"):
        gt.constant(X).__add__(1, 2)


@pytest.mark.parametrize("method", "sum mean prod max min var std any all".split())
def test_arguments_of_pytorchs_methods_say_what_they_are_called(method: str) -> None:
    x = gt.ones((2, 3))
    with pytest.raises(TypeError, match=rf"{method} takes no argument 'dim'; use axis"):
        getattr(x, method)(dim=1)
    with pytest.raises(TypeError, match=rf"{method} takes no argument 'keepdim'; use keepdims"):
        getattr(x, method)(1, keepdim=True)
