"""Elementwise ops: values, gradients of first and second order, edges, dtypes, traces."""

from __future__ import annotations

import numpy as np
import pytest
from gradcheck import check_gradients
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import gradtape as gt

REAL = np.array([-1.75, -0.6, 0.3, 0.85, 2.5])
POSITIVE = np.array([0.2, 0.7, 1.3, 2.5])
UNIT = np.array([-0.8, -0.3, 0.25, 0.6])
COMPLEX = np.array([0.5 + 1.25j, -0.75 + 0.5j, 1.5 - 0.5j])
ZEROS = np.array([0.0, 1.0, 0.0])

# op, what NumPy says, inputs away from kinks
UNARY = [
    (gt.negative, np.negative, REAL),
    (gt.positive, np.positive, REAL),
    (gt.copy, np.positive, REAL),
    (gt.abs, np.abs, REAL),
    (gt.sign, np.sign, REAL),
    (gt.square, np.square, REAL),
    (gt.sqrt, np.sqrt, POSITIVE),
    (gt.reciprocal, np.reciprocal, REAL),
    (gt.exp, np.exp, REAL),
    (gt.exp2, np.exp2, REAL),
    (gt.expm1, np.expm1, REAL),
    (gt.log, np.log, POSITIVE),
    (gt.log2, np.log2, POSITIVE),
    (gt.log10, np.log10, POSITIVE),
    (gt.log1p, np.log1p, UNIT),
    (gt.sin, np.sin, REAL),
    (gt.cos, np.cos, REAL),
    (gt.tan, np.tan, UNIT),
    (gt.arcsin, np.arcsin, UNIT),
    (gt.arccos, np.arccos, UNIT),
    (gt.arctan, np.arctan, REAL),
    (gt.sinh, np.sinh, REAL),
    (gt.cosh, np.cosh, REAL),
    (gt.tanh, np.tanh, REAL),
    (gt.arcsinh, np.arcsinh, REAL),
    (gt.arccosh, np.arccosh, POSITIVE + 1.0),
    (gt.arctanh, np.arctanh, UNIT),
    (gt.real, np.real, REAL),
    (gt.imag, np.imag, REAL),
    (gt.conj, np.conj, REAL),
    (gt.angle, np.angle, REAL),
]
A, B = np.array([[0.7, -1.4, 2.3]]), np.array([[1.6], [-0.9]])
P, Q = np.array([[0.7, 1.4, 2.3]]), np.array([[1.6], [-0.9]])
BINARY = [
    (gt.add, np.add, A, B),
    (gt.subtract, np.subtract, A, B),
    (gt.multiply, np.multiply, A, B),
    (gt.divide, np.divide, A, B),
    (gt.remainder, np.remainder, A, B),
    (gt.power, np.power, P, Q),
    (gt.logaddexp, np.logaddexp, A, B),
    (gt.arctan2, np.arctan2, A, B),
    (gt.hypot, np.hypot, A, B),
    (gt.maximum, np.maximum, A, B),
    (gt.minimum, np.minimum, A, B),
]
HOLOMORPHIC = [
    *(gt.negative, gt.square, gt.sqrt, gt.reciprocal, gt.exp, gt.exp2, gt.expm1, gt.log, gt.log2),
    *(gt.log10, gt.log1p, gt.sin, gt.cos, gt.tan, gt.arcsin, gt.arccos, gt.arctan, gt.sinh),
    *(gt.cosh, gt.tanh, gt.arcsinh, gt.arccosh, gt.arctanh),
]
NOT_HOLOMORPHIC = [gt.abs, gt.sign, gt.real, gt.imag, gt.conj, gt.angle]


def name(x):
    return getattr(x, "__name__", None)


def gradient(f, *xs, **kwargs):
    """The value and the gradients of f at constants."""
    xs = [gt.constant(x) for x in xs]
    with gt.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    return y, tape.gradient(y, xs, **kwargs)


def values(grads):
    return [None if g is None else np.asarray(g.numpy()).tolist() for g in grads]


# -- values and gradients --------------------------------------------------------------------------


@pytest.mark.parametrize(("op", "reference", "x"), UNARY, ids=name)
def test_unary(op, reference, x):
    np.testing.assert_allclose(op(x).numpy(), reference(x), rtol=1e-14)
    check_gradients(op, x)


@pytest.mark.parametrize(("op", "reference", "x", "y"), BINARY, ids=name)
def test_binary_with_broadcasting(op, reference, x, y):
    np.testing.assert_allclose(op(x, y).numpy(), reference(x, y), rtol=1e-14)
    check_gradients(op, x, y)
    check_gradients(op, x[0], y)
    check_gradients(op, x[0, 0], y[0, 0])


@pytest.mark.parametrize("op", HOLOMORPHIC, ids=name)
def test_holomorphic_gradients_are_conjugated_derivatives(op):
    check_gradients(op, COMPLEX)


@pytest.mark.parametrize("op", NOT_HOLOMORPHIC, ids=name)
def test_complex_gradients_of_what_is_not_holomorphic(op):
    check_gradients(op, COMPLEX)


@pytest.mark.parametrize("op", [gt.add, gt.subtract, gt.multiply, gt.divide, gt.power], ids=name)
@pytest.mark.parametrize("mixed", ["neither", "left", "right"])
def test_binary_complex(op, mixed):
    x = np.array([1.2, 0.4, 2.0]) if mixed == "left" else COMPLEX
    y = np.array([[1.5], [-0.5]]) if mixed == "right" else np.array([[0.5 - 0.75j], [1.5 + 0.5j]])
    check_gradients(op, x, y)


def test_tensorflow_convention_for_complex_numbers():
    def at(op, z):
        return gradient(op, np.complex128(z))[1][0].item()

    assert at(lambda z: z**2, 1 + 2j) == 2 - 4j
    assert at(gt.square, 1 + 2j) == 2 - 4j
    assert at(gt.real, 3 + 4j) == 1
    assert at(gt.imag, 3 + 4j) == 1j
    assert at(gt.abs, 3 + 4j) == pytest.approx(0.6 + 0.8j, abs=1e-15)
    assert at(gt.angle, 3 + 4j) == pytest.approx(-0.16 + 0.12j, abs=1e-15)
    assert at(gt.abs, 0j) == 0


def test_where_and_clip():
    x, y = np.array([0.5, -1.5, 2.5]), np.array([[1.0], [2.0]])
    condition = np.array([True, False, True])
    np.testing.assert_array_equal(gt.where(condition, x, y).numpy(), np.where(condition, x, y))
    check_gradients(gt.where, condition, x, y)
    check_gradients(lambda x: gt.where(x > 0.0, x * x, 3.0), x)
    check_gradients(gt.clip, x, y - 2.0, y)
    check_gradients(gt.clip, x, y, y - 2.0)  # the bounds the wrong way round: the upper one wins
    check_gradients(lambda x: gt.clip(x, 0.0), x)
    check_gradients(lambda x: gt.clip(x, None, 1.0), x)
    np.testing.assert_array_equal(gt.clip(x, -1.0, 1.0).numpy(), np.clip(x, -1.0, 1.0))
    np.testing.assert_array_equal(gt.clip(x, y, y - 2.0).numpy(), np.clip(x, y, y - 2.0))
    np.testing.assert_array_equal(gt.clip(x).numpy(), x)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, -2, 0.5, 2.0, 2.5, 0.0])
def test_power_with_a_python_exponent(exponent):
    np.testing.assert_allclose(gt.power(POSITIVE, exponent).numpy(), POSITIVE**exponent, rtol=1e-15)
    check_gradients(lambda x: x**exponent, POSITIVE, order=3)


@pytest.mark.parametrize("base", [2, 0.5, 1, 10.0])
def test_power_with_a_python_base(base):
    check_gradients(lambda x: base**x, REAL, order=3)


def test_power_with_a_complex_python_number():
    check_gradients(lambda z: z ** (1.5 + 0.5j), COMPLEX)
    check_gradients(lambda z: (1.5 + 0.5j) ** z, COMPLEX)


# -- edges -----------------------------------------------------------------------------------------


def test_ties_go_to_the_first_argument():
    x = np.array([-1.0, 0.0, 1.0])
    assert values(gradient(lambda x: gt.maximum(x, 0.0), x)[1]) == [[0.0, 1.0, 1.0]]
    assert values(gradient(lambda x: gt.maximum(0.0, x), x)[1]) == [[0.0, 0.0, 1.0]]
    assert values(gradient(lambda x: gt.minimum(x, 0.0), x)[1]) == [[1.0, 1.0, 0.0]]
    assert values(gradient(lambda x: gt.minimum(0.0, x), x)[1]) == [[1.0, 0.0, 0.0]]
    assert values(gradient(gt.maximum, x, x)[1]) == [[1.0] * 3, [0.0] * 3]


def test_clip_passes_gradients_on_its_bounds():
    x = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    assert values(gradient(lambda x: gt.clip(x, -1.0, 1.0), x)[1]) == [[0.0, 1.0, 1.0, 1.0, 0.0]]


def test_power_at_zero_and_below():
    # 0**0 is 1, flat in both directions; below 0 the exponent has no gradient
    assert values(gradient(gt.power, 0.0, 0.0)[1]) == [0.0, 0.0]
    assert values(gradient(gt.power, 0.0, 2.0)[1]) == [0.0, 0.0]
    assert values(gradient(gt.power, -2.0, 3.0)[1]) == [12.0, 0.0]
    assert values(gradient(lambda x: x**0, 0.0)[1]) == [0.0]
    assert values(gradient(lambda x: x**1, 0.0)[1]) == [1.0]
    assert values(gradient(lambda y: 0.0**y, 2.0)[1]) == [0.0]
    assert values(gradient(lambda y: (-2.0) ** y, 2.0)[1]) == [0.0]
    assert values(gradient(lambda y: 0j**y, 2.0)[1]) == [0.0]
    _, (gx, gy) = gradient(gt.power, np.array([2.0, 3.0]), np.array([3, 0]))
    assert (gx.numpy().tolist(), gy) == ([12.0, 0.0], None)


def test_subgradients_at_zero():
    assert values(gradient(gt.abs, 0.0)[1]) == [0.0]
    assert values(gradient(gt.hypot, 0.0, 0.0)[1]) == [0.0, 0.0]
    with np.errstate(divide="ignore"):
        assert values(gradient(gt.sqrt, 0.0)[1]) == [np.inf]


def test_the_unchosen_branch_of_where_leaks_nan():
    with np.errstate(all="ignore"):
        _, (g,) = gradient(lambda x: gt.where(x > 0.0, gt.log(x), 0.0), np.array([0.0, 1.0]))
    assert np.isnan(g.numpy()[0])
    assert g.numpy()[1] == 1.0


def test_logaddexp_of_impossible_events():
    y, grads = gradient(gt.logaddexp, np.array([-np.inf, -np.inf]), np.array([0.0, -np.inf]))
    assert y.numpy().tolist() == [0.0, -np.inf]
    assert values(grads) == [[0.0, 0.0], [1.0, 0.0]]


def test_connected_zeros_and_the_end_of_connection():
    assert values(gradient(lambda x: x * 0.0, 5.0)[1]) == [0.0]
    assert values(gradient(lambda x: x - x, 5.0)[1]) == [0.0]
    assert values(gradient(gt.sign, np.array([-2.0, 0.0, 3.0]))[1]) == [[0.0, 0.0, 0.0]]
    x = gt.constant(5.0)
    with gt.GradientTape() as outer:
        outer.watch(x)
        with gt.GradientTape() as middle:
            middle.watch(x)
            with gt.GradientTape() as inner:
                inner.watch(x)
                y = x * x
            first = inner.gradient(y, x)
        second = middle.gradient(first, x)
    assert (first.item(), second.item(), outer.gradient(second, x)) == (10.0, 2.0, None)


@pytest.mark.parametrize(
    "f",
    [gt.floor, gt.ceil, gt.trunc, gt.round, gt.rint, gt.isnan, gt.isfinite, gt.isinf]
    + [gt.stop_gradient, gt.logical_not, lambda x: x // 2.0, lambda x: 2.0 // x]
    + [lambda x, op=op: op(x, 0.5) for op in (gt.equal, gt.not_equal, gt.less, gt.less_equal)]
    + [lambda x, op=op: op(x, 0.5) for op in (gt.greater, gt.greater_equal)]
    + [lambda x, op=op: op(x, x) for op in (gt.logical_and, gt.logical_or, gt.logical_xor)]
    + [lambda x: gt.cast(x, "int32"), lambda x: gt.cast(gt.cast(x, "int32"), "float32")],
)
def test_what_has_no_gradient(f):
    assert gradient(f, np.array([0.25, 1.5]))[1] == [None]


@pytest.mark.parametrize(
    "op", ["isnan", "isinf", "isfinite", "floor", "ceil", "trunc", "rint", "round", "logical_not"]
)
def test_values_of_tests_and_rounding(op):
    x = np.array([-1.5, -0.5, 0.0, 0.5, 2.5, np.inf, np.nan])
    got, want = getattr(gt, op)(x).numpy(), getattr(np, op)(x)
    np.testing.assert_array_equal(got, want)
    assert got.dtype == want.dtype


@pytest.mark.parametrize(
    "op",
    [
        "equal",
        "not_equal",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "logical_and",
        "logical_or",
        "logical_xor",
        "floor_divide",
    ],
)
def test_values_of_comparisons(op):
    x, y = np.array([[1.0, 0.0, 3.0]]), np.array([[1.0], [2.0]])
    np.testing.assert_array_equal(getattr(gt, op)(x, y).numpy(), getattr(np, op)(x, y))


def test_round_to_decimals():
    x = np.array([1.2345, -0.0456], np.float32)
    np.testing.assert_allclose(gt.round(x, 2).numpy(), np.round(x, 2))
    np.testing.assert_allclose(gt.round(gt.constant([151, -49]), -1).numpy(), [150, -50])


# -- dtypes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("op", "reference", "x"), UNARY, ids=name)
def test_unary_keeps_the_dtype(op, reference, x, dtype):
    y, (g,) = gradient(op, x.astype(dtype))
    assert (y.dtype, g.dtype) == (dtype, dtype)


@pytest.mark.parametrize(("op", "reference", "x", "y"), BINARY, ids=name)
def test_binary_gradients_have_the_dtypes_of_their_sources(op, reference, x, y):
    z, (gx, gy) = gradient(op, x.astype("float32"), y)
    assert (z.dtype, gx.dtype, gy.dtype) == ("float64", "float32", "float64")
    assert (gx.shape, gy.shape) == (x.shape, y.shape)
    z, (gx,) = gradient(lambda x: op(x, 1.5), x.astype("float32"))
    assert (z.dtype, gx.dtype) == ("float32", "float32")


def test_python_scalars_and_integers_are_promoted_as_by_numpy():
    half = gt.constant([1.0], dtype="float16")
    assert (half * 2.0).dtype == "float16"
    assert gt.where([True], half, 1.0).dtype == "float16"
    assert (gt.constant([1], dtype="int32") / gt.constant([2], dtype="int32")).dtype == "float64"
    assert (gt.constant([3]) ** 2).dtype == "int64"
    assert (gt.constant([3]) ** 2.0).dtype == "float64"
    assert gt.sin(gt.constant([1])).dtype == "float64"
    assert gradient(lambda x, n: x * n, np.float32([2.0]), np.array([3]))[1][0].dtype == "float32"


def test_where_of_two_python_numbers_has_the_default_dtype():
    condition = gt.constant([True, False])
    for x, y, dtype in (
        (1.0, 0.0, "float32"),
        (1, 0.0, "float32"),
        (1.0, 0, "float32"),
        (1, 0, "int64"),
        (1j, 0, "complex64"),
        (True, False, "bool"),
    ):
        for f in (gt.where, gt.function(lambda c, x, y: gt.where(c, x, y))):
            z = f(condition, x, y)
            assert (z.dtype, z.tolist()) == (dtype, [x, y])


def test_numpy_functions_of_tensors():
    x = gt.constant(REAL)
    for name in ("sin", "rint", "absolute", "conjugate", "isnan", "negative", "arctan", "square"):
        have = getattr(np, name)(x)
        assert isinstance(have, gt.Tensor)
        np.testing.assert_array_equal(have.numpy(), getattr(np, name)(REAL))
    for name in ("add", "true_divide", "maximum", "mod", "less"):
        have = getattr(np, name)(x, np.abs(REAL))
        assert isinstance(have, gt.Tensor)
        np.testing.assert_allclose(have.numpy(), getattr(np, name)(REAL, np.abs(REAL)))
    np.testing.assert_array_equal(np.clip(x, -1.0, 1.0).numpy(), np.clip(REAL, -1.0, 1.0))
    np.testing.assert_array_equal(np.round(x, 1).numpy(), np.round(REAL, 1))
    np.testing.assert_array_equal(np.where(x > 0, x, 0.0).numpy(), np.where(REAL > 0, REAL, 0.0))


@pytest.mark.parametrize(("source", "target"), [("float32", "float64"), ("float64", "complex64")])
def test_cast_passes_gradients_back_in_the_source_dtype(source, target):
    for a, b in ((source, target), (target, source)):
        y, (g,) = gradient(lambda x, b=b: gt.cast(x, b) * 3.0, np.array([1.0, 2.0], a))
        assert (y.dtype, g.dtype, g.numpy().tolist()) == (b, a, [3.0, 3.0])
    check_gradients(lambda x: gt.cast(x, "complex128") ** 2, REAL)
    check_gradients(lambda z: gt.cast(z, "float64") ** 2, COMPLEX)


@pytest.mark.parametrize("dtype", ["S3", "O", "nonsense", "datetime64[s]"])
def test_cast_refuses_what_no_tensor_holds(dtype):
    with pytest.raises(TypeError, match="cast"):
        gt.cast(gt.constant(1.0), dtype)


# -- shapes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)])
@pytest.mark.parametrize(("op", "reference", "x"), UNARY, ids=name)
def test_unary_without_axes_and_without_elements(op, reference, x, shape):
    y, (g,) = gradient(op, np.full(shape, x[-1]))
    assert (y.shape, g.shape) == (shape, shape)


@pytest.mark.parametrize(("op", "reference", "x", "y"), BINARY, ids=name)
def test_binary_without_elements(op, reference, x, y):
    z, (gx, gy) = gradient(op, np.ones((2, 0)), np.ones((2, 1)))
    assert (z.shape, gx.shape, gy.shape) == ((2, 0), (2, 0), (2, 1))
    assert not gy.numpy().any()


@pytest.mark.parametrize("f", [gt.floor, lambda z: gt.sum(z, axis=1)])
def test_errors_name_the_op(f):
    z = gt.constant(np.array([1j]))
    with pytest.raises((TypeError, ValueError), match=r"^(floor|sum): .*complex128"):
        f(z)


def test_shapes_that_do_not_broadcast():
    def f(x, y):
        return gt.logaddexp(x, y)

    x, y = gt.constant(np.ones((2, 3))), gt.constant(np.ones((4, 3)))
    with pytest.raises(ValueError, match=r"logaddexp: .*\(2,3\).*\(4,3\).*float64\[2, 3\]"):
        f(x, y)
    with pytest.raises(ValueError, match=r"logaddexp.*\(2, 3\).*\(4, 3\)"):
        gt.function(f)(x, y)


# -- traces ----------------------------------------------------------------------------------------


def second_order(f, x):
    """The value of f, its gradient, and the gradient of that."""
    with gt.GradientTape() as outer:
        outer.watch(x)
        with gt.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        first = inner.gradient(y, x, unconnected_gradients="zero")
    return [y, first, outer.gradient(first, x, unconnected_gradients="zero")]


@pytest.mark.parametrize(
    ("op", "x"),
    [(op, x) for op, _, x in UNARY]
    + [(lambda x, op=op: op(x, B), A) for op, _, A, _ in BINARY]
    + [(lambda x, op=op: op(P, x), B) for op, _, _, _ in BINARY]
    + [(lambda x: gt.clip(x, -1.0, 1.0), REAL), (lambda x: gt.where(x > 0.5, x * x, -x), REAL)]
    + [(lambda x: x**3, REAL), (lambda x: x**2.5, POSITIVE), (lambda x: 2.0**x, REAL)]
    + [(op, COMPLEX) for op in (*HOLOMORPHIC, *NOT_HOLOMORPHIC)]
    + [(lambda z: gt.power(z, z), COMPLEX), (lambda x: gt.power(x, x), ZEROS)]
    + [(lambda x: gt.hypot(x, 0.0), ZEROS), (gt.abs, ZEROS + 0j)],
)
def test_traced_is_eager(op, x):
    x = np.stack([x, x])
    for spec in (None, (None,) * x.ndim, x.shape):
        whole = gt.function(
            lambda x: second_order(op, x), input_signature=[gt.TensorSpec(spec, x.dtype)]
        )
        inside = gt.function(op, input_signature=[gt.TensorSpec(spec, x.dtype)])
        for batch in (2, 1, 0) if spec != x.shape else (2,):
            t = gt.constant(x[:batch])
            eager = second_order(op, t)
            for traced in (whole(t), second_order(inside, t)):
                for have, want in zip(traced, eager, strict=True):
                    np.testing.assert_array_equal(have.numpy(), want.numpy())
                    assert have.dtype == want.dtype


# -- laws ------------------------------------------------------------------------------------------

shapes = hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3)


@settings(max_examples=50, deadline=None)
@given(shapes, st.integers(0, 10))
def test_gradients_sum_over_what_was_broadcast(pair, seed):
    rng = np.random.default_rng(seed)
    x, y = (rng.normal(size=shape) for shape in pair.input_shapes)
    g = rng.normal(size=pair.result_shape)
    _, (gx, gy) = gradient(gt.multiply, x, y, output_gradients=gt.constant(g))
    # <g, x * y> is linear in x and in y: both gradients give it back
    total = np.sum(g * x * y)
    assert (gx.shape, gy.shape) == pair.input_shapes
    np.testing.assert_allclose(np.sum(gx.numpy() * x), total, atol=1e-12)
    np.testing.assert_allclose(np.sum(gy.numpy() * y), total, atol=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.floats(-20.0, 20.0), st.floats(-20.0, 20.0))
def test_maximum_and_minimum_share_each_gradient_between_them(a, b):
    x = np.float64([a]), np.float64([b])
    top, bottom = gradient(gt.maximum, *x)[1], gradient(gt.minimum, *x)[1]
    assert sum(g.item() for g in top) == sum(g.item() for g in bottom) == 1.0
