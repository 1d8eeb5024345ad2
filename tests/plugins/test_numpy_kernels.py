"""NumPy's own kernels give what the portable ones give, which run on any array API library."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from families import network_kernels
from samples import listed

import gradtape as gt

# the ops that NumPy has kernels of its own for, and these
KERNELS = {
    name: kernel for (name, owner), kernel in gt.registry().kernels.items() if owner == "numpy"
}
CONVOLUTIONS = {"conv", "conv_to_filters", "conv_to_images", "conv_transpose"}
POOLING = {"avg_pool", "avg_pool_scatter", "max_pool", "max_pool_scatter"}

M = np.array([[0.5, -0.75, 0.9], [0.0, 0.25, -0.3]])
ROW, COLUMN = M[:1], M[:, :1]
T = np.eye(70) + 0.05 * np.sin(np.arange(4900.0)).reshape(70, 70)  # more rows than one block
TRIANGULAR = [
    ("solve_triangular", arrays, {"lower": lower, "unit_diagonal": unit})
    for arrays in ((T, T[:, :2]), (T[:6, :6], T[:6, :2]), (T[None], np.stack([T, T + 1.0])))
    for lower in (False, True)
    for unit in (False, True)
]
NETWORK = [
    *TRIANGULAR,
    *(sample for sample in network_kernels.KERNELS if sample[0] in KERNELS),
    *(("gelu", (x,), {"approximate": tanh}) for x in (M, -5.0 * M) for tanh in (False, True)),
    *(("gelu_slope", (x,), {}) for x in (M, 0.01 * M, -5.0 * M, network_kernels.NEAR_ROOTS)),
]
REDUCE = [{}, {"axis": 0}, {"axis": -1, "keepdims": True}, {"axis": (0, 1)}, {"axis": (-1,)}]
SCAN = [
    *({"axis": axis, "reverse": reverse} for axis in (0, -1) for reverse in (False, True)),
    {"axis": (0, 1)},
    {"axis": None, "reverse": True},
]
SAMPLES = [
    *((name, (M,), params) for name in ("sum", "mean", "prod", "max", "min") for params in REDUCE),
    *((name, (M,), {**p, "ddof": 0.5}) for name in ("var", "std") for p in REDUCE),
    *(("tanh_slope", (9 * x, np.tanh(9 * x)), {}) for x in (M, 0.01 * M)),
    *((name, (M,), {}) for name in ("arcsin", "arccos", "arctan", "arcsinh", "arctanh", "exp2")),
    *((name, (M,), {}) for name in ("zeros_like", "ones_like")),
    *(("size_over", (M,), p) for p in ({}, {"axis": 0}, {"axis": (-1, 0)})),
    ("size_over", (M.astype("int32"),), {"axis": 1}),
    *((name, (M,), p) for name in ("cumsum", "cumprod") for p in SCAN),
    *(("shift", (M,), {**p, "fill": 3}) for p in SCAN),
    ("where", (M, M, M + 1.0), {}),
    *(("recurrence", (M, M + 1.0), p) for p in SCAN),
    *(("product_of_others", (M,), {"axis": axis}) for axis in (None, 0, -1, (0, 1))),
    ("shift", (M[:0],), {"axis": 0, "fill": 1}),
    ("arccosh", (M + 2.0,), {}),
    ("arctan2", (M, M[::-1]), {}),
    ("power", (M, M + 2.0), {}),
    ("power", (M, 2.5), {}),
    ("power", (M, -1), {}),
    ("reshape_like", (M, M.T), {}),
    ("unbroadcast_like", (M, ROW), {}),
    ("unbroadcast_like", (M, COLUMN), {}),
    ("unbroadcast_like", (M, ROW[0]), {}),
    ("unbroadcast_like", (M[None, None], ROW), {}),
    ("unbroadcast_like", (M, M[0, 0]), {}),
    ("unbroadcast_like", (M, M.astype("float32")), {}),
    ("unreduce_like", (M[0, 0], M), {}),
    ("unreduce_like", (M[:1, :1], M), {"keepdims": True}),
    ("unreduce_like", (M[0], M), {"axis": 0}),
    ("unreduce_like", (M[:, 0], M), {"axis": -1}),  # not contiguous
    ("unreduce_like", (M[:, 0].copy(), M), {"axis": (1,)}),
    ("unreduce_like", (COLUMN.copy(), M), {"axis": 1, "keepdims": True}),
    ("unreduce_like", (M[0].astype("float32"), M), {"axis": -2}),
    ("unreduce_like", (np.ones(3), np.ones((0, 3))), {"axis": 0}),
]


def ids(sample):
    return f"{sample[0]}{sample[2]}"


def portable(name):
    return gt.registry().ops[name].kernel


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "int64"])
@pytest.mark.parametrize("sample", SAMPLES, ids=ids)
def test_they_agree_with_the_portable_kernels(sample, dtype):
    name, arrays, params = sample
    if name in ("max", "min", "arctan2") and dtype == "complex64":
        pytest.skip("complex numbers have no order")
    if name == "power" and dtype == "int64":
        pytest.skip("integers have no negative powers")
    if name.startswith("arc"):
        dtype = dtype.replace("int64", "float64")
    arrays = [x if isinstance(x, (int, float)) else x.astype(dtype) for x in arrays]
    kernel = portable(name)
    with np.errstate(all="ignore"):
        have = KERNELS[name](*arrays, **params)
        if isinstance(kernel, str):
            want = getattr(np, kernel)(*arrays, **params)
        else:
            want = kernel(np, *arrays, **params)
    assert have.dtype == want.dtype
    assert have.shape == want.shape
    coarsest = {"e": 2e-3, "f": 2e-6, "F": 2e-6}
    rtol = max(coarsest.get(x.dtype.char, 1e-7) for x in (have, np.asarray(arrays[0])))
    np.testing.assert_allclose(have, want, rtol=rtol)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("sample", NETWORK, ids=ids)
def test_those_of_networks_agree_and_leave_their_inputs(sample, dtype):
    name, arrays, params = sample
    if name in ("cofactor", "solve_triangular") and dtype == "float16":
        pytest.skip("LAPACK knows no float16")
    arrays = [x.astype(dtype) if x.dtype.kind == "f" else x for x in arrays]
    given = [x.copy() for x in arrays]
    tolerance = {"float16": 2e-2, "float32": 1e-5, "float64": 1e-12}[dtype]
    results = listed(KERNELS[name](*arrays, **params))
    for mine, theirs in zip(results, listed(portable(name)(np, *arrays, **params)), strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)
    for x, before in zip(arrays, given, strict=True):
        np.testing.assert_array_equal(x, before)  # what a tape holds is left as it was


def test_every_kernel_is_sampled():
    # those of convolutions and pooling in test_convolution.py
    assert {name for name, _, _ in (*SAMPLES, *NETWORK)} | CONVOLUTIONS | POOLING == set(KERNELS)


def test_a_zero_on_the_diagonal_is_refused():
    singular = T.copy()
    singular[60, 60] = 0.0
    with pytest.raises(np.linalg.LinAlgError):
        gt.linalg.solve_triangular(singular, T)
    gt.linalg.solve_triangular(singular, T, unit_diagonal=True)


def test_what_is_repeated_is_read_only():
    view = KERNELS["unreduce_like"](np.ones(3), np.ones((2, 3)), axis=0)
    with pytest.raises(ValueError, match="read-only"):
        view[0, 0] = 2.0


# float arrays for each op that the standard can express
PORTABLE = {
    **dict.fromkeys("abs arccos arcsin arctan arcsinh arctanh ceil conj cos cosh".split(), (M,)),
    **dict.fromkeys("exp exp2 expm1 floor identity imag isfinite isinf isnan".split(), (M,)),
    **dict.fromkeys("log1p negative ones_like positive real round sign sin sinh".split(), (M,)),
    **dict.fromkeys("angle square stop_gradient tan tanh trunc zeros_like".split(), (M,)),
    **dict.fromkeys("sum mean prod max min var std logsumexp argmax argmin".split(), (M,)),
    **dict.fromkeys("count_nonzero size_over".split(), (M,)),
    **dict.fromkeys("arccosh log log2 log10 reciprocal sqrt".split(), (M + 2.0,)),
    **dict.fromkeys("add subtract multiply divide remainder".split(), (M, M[::-1] + 2.0)),
    **dict.fromkeys("arctan2 hypot logaddexp maximum minimum".split(), (M, M[::-1] + 2.0)),
    **dict.fromkeys("equal not_equal less less_equal greater".split(), (M, M[::-1])),
    **dict.fromkeys("greater_equal floor_divide recurrence".split(), (M, M[::-1] + 2.0)),
    **dict.fromkeys("logical_and logical_or logical_xor".split(), (M > 0, M < 0)),
    **dict.fromkeys("logical_not any all".split(), (M > 0,)),
    "power": (M + 2.0, M),
    "where": (M > 0, M, M[::-1]),
    "clip": (M, M[::-1], M + 2.0),
    "cast": (M,),
    "cumsum": (M,),
    "cumprod": (M,),
    "shift": (M,),
    "cast_like": (M, M.astype("float32")),
    "broadcast_like": (ROW, M),
    "unbroadcast_like": (M, ROW),
    "unreduce_like": (M[0], M),
    "reshape_like": (M, M.T),
}
PARAMS = {
    "cast": {"dtype": "float32"},
    "unreduce_like": {"axis": 0},
    "cumsum": {"axis": 0, "reverse": True},
    "cumprod": {"axis": (0, 1)},
    "recurrence": {"axis": 1, "reverse": True},
    "shift": {"axis": 1, "fill": 0},
    "round": {"decimals": 1},
}


@pytest.mark.filterwarnings("ignore:You are comparing")
@pytest.mark.parametrize("name", PORTABLE)
def test_the_portable_kernels_use_the_standard_alone(name, strict):
    kernel = portable(name)
    run = getattr(strict, kernel) if isinstance(kernel, str) else partial(kernel, strict)
    params = PARAMS.get(name, {})
    have = run(*[strict.asarray(x) for x in PORTABLE[name]], **params)
    want = gt.registry().ops[name](*PORTABLE[name], **params)
    np.testing.assert_allclose(np.asarray(have), want.numpy(), rtol=1e-14)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64"])
def test_relu_agrees_to_the_sign_of_zero(dtype):
    x = np.array([-0.0, 0.0, -1.5, 2.5, np.inf, -np.inf] if dtype != "int64" else [0, -1, 2], dtype)
    have, want = KERNELS["relu"](x), portable("relu")(np, x)
    assert have.dtype == want.dtype
    assert have.tobytes() == want.tobytes()
    if dtype != "int64":
        assert np.isnan(KERNELS["relu"](x * np.nan)).all()
    with pytest.raises(TypeError, match="real numbers"):
        KERNELS["relu"](x.astype("complex64"))
