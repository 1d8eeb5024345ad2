"""NumPy's protocols: its functions, ufuncs and namespaces given tensors, and what it may not do."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest

import gradtape as gt

A = np.array([[1.0, -2.0, 3.0], [0.5, 5.0, -6.0]])
X, V = gt.constant(A), gt.Variable(A)
SPD = gt.constant(np.array([[2.0, 0.5], [0.5, 1.0]]))


# -- functions -------------------------------------------------------------------------------------

# Arguments in NumPy's places and by NumPy's names, many unlike ours.
CALLS = {
    "by keyword a": lambda x: np.sum(a=x, axis=1),
    "out is None": lambda x: np.mean(x, axis=0, out=None),
    "all positions": lambda x: np.sum(x, 0, None, None, True),
    "dtype in third place": lambda x: np.mean(x, 0, "float32"),
    "ddof in fifth place": lambda x: np.var(x, 1, None, None, 1),
    "correction": lambda x: np.std(x, axis=0, correction=1),
    "sum dtype": lambda x: np.sum(x, dtype=np.float32),
    "cumsum dtype": lambda x: np.cumsum(x, 1, "float32"),
    "concatenate": lambda x: np.concatenate([x, x], 0, out=None),
    "concatenate dtype": lambda x: np.concatenate([x, x], axis=1, dtype="float32"),
    "stack dtype": lambda x: np.stack([x, x], dtype="complex128"),
    "where": lambda x: np.where(x > 0, x, 0.0),
    "clip by old names": lambda x: np.clip(x, a_min=-1.0, a_max=2.0),
    "clip out": lambda x: np.clip(x, -1.0, 2.0, None),
    "dot by names": lambda x: np.dot(a=x, b=np.ones(3)),
    "einsum optimize": lambda x: np.einsum("ij,ij->i", x, x, optimize=True),
    "sort kind": lambda x: np.sort(x, 1, "stable"),
    "argsort kind": lambda x: np.argsort(x, kind="stable"),
    "reshape C": lambda x: np.reshape(x, (3, 2), order="C"),
    "reshape F": lambda x: np.reshape(x, (3, -1), order="F"),
    "ravel F": lambda x: np.ravel(x, order="F"),
    "searchsorted v": lambda x: np.searchsorted(np.sort(x[0]), v=[0.0, 2.0]),
    "broadcast_to subok": lambda x: np.broadcast_to(x, (2, 2, 3), subok=False),
    "full_like dtype": lambda x: np.full_like(x, 2, dtype="int32"),
    "ones_like": lambda x: np.ones_like(x, order="K"),
    "empty_like shape": lambda x: np.zeros_like(np.empty_like(x)),
    "copy": lambda x: np.copy(x),
    "astype": lambda x: np.astype(x, "float32"),
    "pad": lambda x: np.pad(x, 1, constant_values=2.0),
    "roll": lambda x: np.roll(x, (1, 2), axis=(0, 1)),
    "gradient": lambda x: np.gradient(x, 0.5, axis=1),
    "linspace": lambda x: np.linspace(x, x + 1.0, 4),
    "linspace, open": lambda x: np.linspace(0.0, x, 4, endpoint=False),
    "quantile": lambda x: np.quantile(x, 0.3, axis=1, method="linear"),
    "linalg.norm": lambda x: np.linalg.norm(x, ord="fro"),
    "linalg.svd": lambda x: np.linalg.svd(x, compute_uv=False),
    "fft.fft": lambda x: np.fft.fft(a=x, n=4, axis=0, norm="ortho"),
    "fft.irfft": lambda x: np.fft.irfft(np.fft.rfft(x), 3),
    "nonzero by where": lambda x: np.where(x > 0)[1],
    "divmod": lambda x: np.divmod(x, 2.0)[1],
    "bitwise": lambda x: np.bitwise_or(x > 0, x < -1),
    "shift": lambda x: np.left_shift(np.astype(np.floor(x), "int64"), 1),
    "ldexp": lambda x: np.ldexp(x, 2),
    "where=True": lambda x: np.add(x, 1.0, where=True),
}


@pytest.mark.parametrize("name", CALLS)
def test_arguments_mean_what_they_mean_to_numpy(name: str) -> None:
    call, expected = CALLS[name], CALLS[name](A)
    for x in (X, V):
        result = call(x)
        assert isinstance(result, gt.Tensor)
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize(
    "name", ["reshape F", "linspace", "linspace, open", "sum dtype", "copy", "ldexp"]
)
def test_what_is_made_of_several_ops_has_a_gradient(name: str) -> None:
    with gt.GradientTape() as tape:
        tape.watch(X)
        y = gt.sum(CALLS[name](X) * 2.0)
    g = tape.gradient(y, X)
    weight = {"linspace": 4.0, "linspace, open": 1.5, "ldexp": 4.0}.get(name, 1.0)
    assert g.dtype == X.dtype
    np.testing.assert_allclose(g.numpy(), np.full(A.shape, 2.0 * weight))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: np.sum(X, out=np.zeros(())), r"numpy\.sum: out=.*never changes"),
        (lambda: np.sum(X, out=gt.zeros(())), r"numpy\.sum: out=.*tensors; a tensor never changes"),
        (lambda: np.ones_like(X, shape=(2,)), r"ones_like: shape=\(2,\)"),
        (lambda: np.fft.fft(X, out=np.zeros(3)), r"fft\.fft: out=.*use the returned result"),
        (lambda: np.put(X, [0], 1.0), r"numpy\.put does.*\.at\[index\]"),
        (lambda: np.copyto(np.zeros((2, 3)), X), r"numpy\.copyto writes.*\.numpy\(\)"),
        (lambda: np.fill_diagonal(SPD, 0.0), r"numpy\.fill_diagonal does.*never changes"),
    ],
)
def test_arguments_that_tensors_do_not_take_say_what_to_use(call: Any, message: str) -> None:
    with gt.GradientTape(), pytest.raises(TypeError, match=message):
        call()


def test_questions_about_values_get_plain_answers() -> None:
    assert np.can_cast(X.dtype, "complex128")
    assert np.result_type(X, np.float32) == np.float64
    assert np.array_repr(X).startswith("array([[")
    assert np.isreal(X).all()
    assert not np.may_share_memory(X, A)
    assert np.unravel_index(gt.constant([4]), (2, 3))[0] == [1]
    np.testing.assert_array_equal(np.digitize(X[0], [0.0, 2.0]), [1, 0, 2])
    np.testing.assert_array_equal(np.tril_indices_from(SPD), np.tril_indices(2))


def test_questions_about_shapes_and_dtypes_are_answered_in_a_trace() -> None:
    asked: list[Any] = []

    @gt.function(input_signature=[gt.TensorSpec((None, 3), "float64")])
    def program(x: Any) -> Any:
        asked.extend([np.shape(x), np.ndim(x), np.result_type(x, np.complex64)])
        asked.extend([np.iscomplexobj(x), np.can_cast(x.dtype, "float32")])
        return x

    program(X)
    assert asked == [(None, 3), 2, np.complex128, False, False]
    assert (np.shape(V), np.size(X), np.size(X, 0), np.size(V, axis=1)) == ((2, 3), 6, 2, 3)


@pytest.mark.parametrize(
    "make",
    [
        lambda **like: np.zeros((2, 3), **like),
        lambda **like: np.ones(2, dtype="float32", **like),
        lambda **like: np.full(2, 1.5, **like),
        lambda **like: np.full(2, 3, **like),
        lambda **like: np.eye(2, 3, 1, **like),
        lambda **like: np.identity(3, **like),
        lambda **like: np.arange(4, **like),
        lambda **like: np.arange(0.0, 2.0, 0.5, **like),
        lambda **like: np.array([1.0, 2.0], **like),
        lambda **like: np.asarray([[1, 2]], **like),
        lambda **like: np.asanyarray(2.5, **like),
    ],
)
def test_like_makes_tensors_of_numpys_dtypes(make: Any) -> None:
    made, expected = make(like=X), make()
    assert isinstance(made, gt.Tensor)
    assert made.dtype == expected.dtype
    np.testing.assert_array_equal(made.numpy(), expected)
    assert np.empty((2, 2), like=X).shape == (2, 2)
    assert isinstance(np.array([X[0], X[1]], like=X), gt.Tensor)


# -- functions that gradtape lacks -----------------------------------------------------------------


def test_a_missing_function_is_named_with_near_names() -> None:
    with gt.GradientTape():
        with pytest.raises(TypeError, match=r"numpy\.sort_complex has no .*register it"):
            np.sort_complex(X)
        with pytest.raises(TypeError, match=r"numpy\.histogram2d has no .*near names: histogram"):
            np.histogram2d(X[0], X[0])


@pytest.mark.parametrize(
    ("call", "argument", "rule", "slope"),
    [
        (lambda x: np.sort_complex(x), np.sort(A[0]), lambda g, x: g.real, 1.0),
        (np.packbits, np.array([1, 0, 1]), None, None),
    ],
    ids=["function", "other"],
)
def test_the_three_lines_of_the_message_register_a_function(
    call: Any, argument: Any, rule: Any, slope: Any
) -> None:
    x = gt.constant(argument)
    with gt.GradientTape(), pytest.raises(TypeError) as caught:
        call(x)
    lines = [line.strip() for line in str(caught.value).splitlines()[1:]]
    assert len(lines) == 3
    exec("\n".join(lines), {"gradtape": gt, "rule": rule})
    try:
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = call(x)
        assert isinstance(y, gt.Tensor)
        np.testing.assert_array_equal(y.numpy(), call(argument))
        g = tape.gradient(y, x)
        assert (g is None) is (rule is None)
        if slope is not None:
            np.testing.assert_array_equal(g.numpy(), np.full(argument.shape, slope))
    finally:
        gt.unregister_plugin("mine")
    with gt.GradientTape(), pytest.raises(TypeError, match="no gradtape counterpart"):
        call(x)


# -- ufuncs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: np.subtract.reduce(X), r"numpy\.subtract\.reduce.*gradtape\.subtract on slices"),
        (
            lambda: np.add.at(np.zeros(3), [0], X[0]),
            r"numpy\.add\.at.*constant\(x\)\.at\[index\]\.add",
        ),
        (lambda: np.add.reduceat(X, [0]), r"numpy\.add\.reduceat.*slices"),
        (
            lambda: np.sin(X, out=np.zeros((2, 3))),
            r"numpy\.sin with \['out'\].*use the returned result",
        ),
        (lambda: np.add(X, 1.0, where=A > 0), r"numpy\.add with \['where'\].*gradtape\.where"),
        (lambda: np.add(X, 1.0, dtype="float32"), r"with \['dtype'\].*astype"),
    ],
)
def test_what_ufuncs_do_not_do_on_tensors_says_what_does(call: Any, message: str) -> None:
    with gt.GradientTape(), pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize("out", [None, (None,)])
def test_no_output_array_is_no_argument(out: Any) -> None:
    np.testing.assert_array_equal(np.add(X, 1.0, out=out).numpy(), A + 1.0)


BINARY = [
    *"add subtract multiply divide true_divide floor_divide remainder mod fmod power".split(),
    *"float_power maximum minimum fmax fmin hypot arctan2 copysign logaddexp logaddexp2".split(),
    *"heaviside less less_equal greater greater_equal equal not_equal nextafter".split(),
    *"logical_and logical_or logical_xor".split(),
]
UNARY = [
    *"abs absolute fabs sign positive negative conj conjugate sin cos tan arctan sinh tanh".split(),
    *"arcsinh exp exp2 expm1 square cbrt reciprocal floor ceil trunc rint deg2rad radians".split(),
    *"rad2deg degrees isfinite isinf isnan signbit logical_not".split(),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", BINARY)
def test_an_array_on_either_side_of_a_ufunc_gives_a_tensor(name: str) -> None:
    ufunc, b = getattr(np, name), np.array([2.0, 1.5, 3.0])
    expected = ufunc(A, b)
    for left, right in ((X, b), (A, gt.constant(b)), (V, b), (A, gt.Variable(b))):
        result = ufunc(left, right)
        assert isinstance(result, gt.Tensor)
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("name", UNARY)
def test_unary_ufuncs(name: str) -> None:
    expected = getattr(np, name)(A)
    result = getattr(np, name)(X)
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12)


OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "**": lambda a, b: a**b,
    "@": lambda a, b: a @ b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


@pytest.mark.parametrize("sign", OPERATORS)
def test_an_array_on_the_left_of_an_operator_leaves_it_to_the_tensor(sign: str) -> None:
    apply, a, b = OPERATORS[sign], np.array([[4.0, 2.0], [1.0, 3.0]]), np.array([2.0, 3.0])
    left = [a, a[0], *([] if sign == "@" else [a[0, 0], np.array(2.0), np.float32(2)])]
    for x in left:
        result = apply(x, gt.constant(b))
        assert isinstance(result, gt.Tensor), type(x)
        np.testing.assert_allclose(result.numpy(), apply(x, b))
        traced = gt.function(lambda y, x=x: apply(x, y))(gt.constant(b))
        np.testing.assert_allclose(traced.numpy(), apply(x, b))


def test_divmod_and_integer_operators() -> None:
    q, r = divmod(X, 2.0)
    np.testing.assert_array_equal((q * 2.0 + r).numpy(), A)
    q, r = divmod(7, gt.constant([2, 3]))
    np.testing.assert_array_equal(np.stack([q, r]).numpy(), [[3, 2], [1, 1]])


def test_gradients_pass_through_an_array_on_the_left() -> None:
    with gt.GradientTape() as tape:
        tape.watch(X)
        y = np.sum(A * X) + np.dot(np.ones(2), X) @ np.ones(3)
    np.testing.assert_array_equal(tape.gradient(y, X).numpy(), A + 1.0)


# -- the array API's namespace ---------------------------------------------------------------------


def softmax(x: Any) -> Any:
    """Written for every array library of the standard."""
    xp = x.__array_namespace__()
    shifted = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    one = xp.asarray(1.0, dtype=x.dtype)
    return xp.astype(one * shifted / xp.sum(shifted, axis=-1, keepdims=True), xp.float64)


def test_a_program_for_the_standard_runs_and_is_differentiated() -> None:
    for x in (X, V):
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = softmax(x)
        np.testing.assert_allclose(y.numpy(), softmax(A), rtol=1e-12)
        np.testing.assert_allclose(tape.gradient(y, x).numpy(), 0.0, atol=1e-12)


def test_the_namespace_has_what_the_standard_has_beside_ops() -> None:
    xp = X.__array_namespace__(api_version="2024.12")
    assert xp is gt
    assert xp.isdtype(X.dtype, "real floating")
    assert xp.result_type(X, xp.complex64) == xp.complex128
    assert xp.finfo(X.dtype).eps == np.finfo(np.float64).eps
    assert (xp.pi, xp.newaxis) == (np.pi, None)
    assert xp.bool is np.bool
    assert xp.asarray([1, 2], dtype=xp.int8).dtype == np.int8
    assert xp.asarray(X) is X
    assert xp.asarray(X, copy=True) is not X
    assert xp.asarray(X, device=X.device) is X
    assert xp.empty((2, 3)).shape == xp.empty_like(X, dtype="int32").shape == (2, 3)
    assert {"asarray", "float32", "pi"} <= set(dir(xp))
    with pytest.raises(ValueError, match="without a copy"):
        xp.asarray(A, copy=False)
    with pytest.raises(ValueError, match=r"api_version.*'1999'"):
        X.__array_namespace__(api_version="1999")


# -- copies, other libraries -----------------------------------------------------------------------


def test_copies_are_followed_by_tapes() -> None:
    with gt.GradientTape() as tape:
        tape.watch(X)
        twin = X.copy()
        y = gt.sum(twin * X)
    assert twin is not X
    np.testing.assert_array_equal(tape.gradient(y, X).numpy(), 2.0 * A)


def test_arrays_of_tensors_are_read_only_views_or_copies() -> None:
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(X)[0, 0] = 9.0
    assert np.shares_memory(np.asarray(X), np.asarray(X, copy=False))
    assert not np.shares_memory(np.asarray(X), np.array(X))
    assert np.asarray(V).dtype == np.float64
    with pytest.raises(ValueError, match="copy"):
        np.asarray(V, dtype="float32", copy=False)
    assert (X.nbytes, X.itemsize, V.nbytes) == (48, 8, 48)


def test_deepcopy() -> None:
    twin = copy.deepcopy(V)
    assert twin is not V
    twin.assign(twin * 0.0)
    np.testing.assert_array_equal(V.numpy(), A)
    assert copy.deepcopy([X])[0] is X


def test_dlpack_to_numpy_and_back() -> None:
    np.testing.assert_array_equal(np.from_dlpack(X), A)
    np.testing.assert_array_equal(np.from_dlpack(V), A)
    back = gt.from_dlpack(np.array([1.0, 2.0]))
    assert isinstance(back, gt.Tensor)
    np.testing.assert_array_equal(back.numpy(), [1.0, 2.0])


def test_dlpack_to_torch() -> None:
    torch = pytest.importorskip("torch")
    there = torch.from_dlpack(gt.constant(A))
    np.testing.assert_array_equal(there.numpy(), A)
    np.testing.assert_array_equal(gt.from_dlpack(there).numpy(), A)


def test_dlpack_to_jax() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jnp = pytest.importorskip("jax.numpy")
    small = A.astype("float32")
    there = jnp.from_dlpack(gt.constant(small))
    np.testing.assert_array_equal(np.asarray(there), small)
    np.testing.assert_array_equal(gt.from_dlpack(there).numpy(), small)


def test_arange_with_one_bound_ends_there() -> None:
    np.testing.assert_array_equal(gt.arange(4).numpy(), [0, 1, 2, 3])
    np.testing.assert_array_equal(gt.arange(4.0, step=2).numpy(), [0.0, 2.0])
    assert gt.arange(4).dtype == np.int64
    assert gt.arange(4.0).dtype == np.float32
