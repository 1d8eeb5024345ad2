"""Arranging, padding, choosing: values, gradients, traces, errors as NumPy's."""

from __future__ import annotations

import array_api_strict as strict
import numpy as np
import pytest
from samples import check_dtypes, check_traces, check_two_orders, check_values

import gradtape as gt

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4))
Y = RNG.standard_normal((2, 3, 4))
V, W = RNG.standard_normal(4), RNG.standard_normal(4)
POINT = np.array(0.7)
MASK = X > 0
NUMBERS = np.array([[2, 0, 1, 1]])


def each(name, *args, **kwargs):
    """The same call of our function and of NumPy's."""
    return [
        lambda *xs, module=module: getattr(module, name)(*xs, *args, **kwargs)
        for module in (gt, np)
    ]


def joined(name, **kwargs):
    return [lambda *xs, m=module: getattr(m, name)(list(xs), **kwargs) for module in (gt, np)]


def padded(width, mode, **kwargs):
    return [lambda x, m=module: m.pad(x, width, mode=mode, **kwargs) for module in (gt, np)]


BOTH = ((1, 2), (0, 3))
SAMPLES = {
    "atleast_1d": (*each("atleast_1d"), [POINT]),
    "atleast_2d": (*each("atleast_2d"), [V]),
    "atleast_2d of several": (*each("atleast_2d"), [POINT, V, X]),
    "atleast_3d": (*each("atleast_3d"), [V]),
    "atleast_3d of several": (*each("atleast_3d"), [POINT, X, Y]),
    "hstack": (*joined("hstack"), [X, X[:, :1]]),
    "hstack of vectors": (*joined("hstack"), [V, W, POINT]),
    "vstack": (*joined("vstack"), [X, V]),
    "dstack": (*joined("dstack"), [X, X + 1]),
    "dstack of vectors": (*joined("dstack"), [V, W]),
    "column_stack": (*joined("column_stack"), [X[:, 0], X]),
    "append": (*each("append"), [X, V]),
    "append along": (*each("append", axis=0), [X, X[:1]]),
    "block": (
        lambda x, y: gt.block([[x, y], [y, x]]),
        lambda x, y: np.block([[x, y], [y, x]]),
        [X, X * 2],
    ),
    "block of vectors": (
        lambda x, v: gt.block([[v], [x]]),
        lambda x, v: np.block([[v], [x]]),
        [X, V],
    ),
    "array_split": (*each("array_split", 3, axis=1), [X]),
    "array_split at": (*each("array_split", [1, 1, 9]), [X]),
    "hsplit": (*each("hsplit", 2), [X]),
    "hsplit of a vector": (*each("hsplit", [1]), [V]),
    "vsplit": (*each("vsplit", 3), [X]),
    "dsplit": (*each("dsplit", 2), [Y]),
    "fliplr": (*each("fliplr"), [X]),
    "flipud": (*each("flipud"), [Y]),
    **{f"rot90 {k}": (*each("rot90", k), [X]) for k in (-1, 0, 1, 2, 3, 5)},
    "rot90 axes": (*each("rot90", 1, (2, 0)), [Y]),
    **{
        f"rollaxis {axis} {start}": (*each("rollaxis", axis, start), [Y])
        for axis, start in [(2, 0), (0, 3), (1, 1), (-1, 1), (0, -1)]
    },
    "broadcast_arrays": (*each("broadcast_arrays"), [X[:, :1], V, POINT]),
    "meshgrid": (*each("meshgrid"), [V, W[:3]]),
    "meshgrid ij": (*each("meshgrid", indexing="ij"), [V, W[:3], W[:2]]),
    "meshgrid sparse": (*each("meshgrid", sparse=True), [V, W[:3]]),
    "meshgrid of one": (*each("meshgrid"), [V]),
    **{
        f"pad {mode}": (*padded(BOTH, mode), [X])
        for mode in (
            *("edge", "reflect", "symmetric", "wrap", "linear_ramp"),
            *("maximum", "mean", "median", "minimum"),
        )
    },
    "pad reflect far": (*padded((7, 9), "reflect"), [V]),
    "pad wrap far": (*padded((7, 9), "wrap"), [V]),
    "pad symmetric all": (*padded(2, "symmetric"), [Y]),
    "pad ramp ends": (*padded(BOTH, "linear_ramp", end_values=((1, -2), (3, 0.5))), [X]),
    "pad mean of some": (*padded(2, "mean", stat_length=((1, 2), (3, 9))), [X]),
    "pad minimum of some": (*padded((1, 3), "minimum", stat_length=2), [X]),
    "compress": (
        lambda x: gt.compress([False, True], x, axis=1),
        lambda x: np.compress([False, True], x, axis=1),
        [X],
    ),
    "compress flat": (
        lambda x: gt.compress(MASK.ravel(), x),
        lambda x: np.compress(MASK.ravel(), x),
        [X],
    ),
    "extract": (lambda x: gt.extract(x > 0, x), lambda x: np.extract(x > 0, x), [X]),
    "select": (
        lambda x, y: gt.select([x > 1, x > 0], [y, x * x], -1.5),
        lambda x, y: np.select([x > 1, x > 0], [y, x * x], -1.5),
        [X, V],
    ),
    "choose": (
        lambda x, y: gt.choose(NUMBERS, [x, y, x * y]),
        lambda x, y: np.choose(NUMBERS, [x, y, x * y]),
        [X, V],
    ),
    "choose wrap": (
        lambda x, y: gt.choose(NUMBERS - 5, [x, y], mode="wrap"),
        lambda x, y: np.choose(NUMBERS - 5, [x, y], mode="wrap"),
        [X, V],
    ),
    "choose clip": (
        lambda x, y: gt.choose(NUMBERS - 1, [x, y], mode="clip"),
        lambda x, y: np.choose(NUMBERS - 1, [x, y], mode="clip"),
        [X, V],
    ),
    "partition": (*each("partition", 1), [X]),
    "partition axis": (*each("partition", (0, 2), axis=0), [X]),
    "partition flat": (*each("partition", 5, axis=None), [X]),
}
# what needs sizes where it has to know how many results there are, or how large
SIZES = ("array_split", "vsplit", "pad mean of some", "pad minimum of some")
RANKLESS = ("pad symmetric all", "extract", "select", "compress flat", "partition", "append")


@pytest.mark.parametrize("case", SAMPLES)
def test_values_are_numpys(case):
    check_values(SAMPLES[case])


@pytest.mark.parametrize("case", SAMPLES)
def test_gradients_of_two_orders(case):
    check_two_orders(SAMPLES[case])


@pytest.mark.parametrize("case", SAMPLES)
def test_traces_agree(case):
    check_traces(SAMPLES[case], "nothing" if case in SIZES else "sizes")


@pytest.mark.parametrize("case", RANKLESS)
def test_traces_of_unknown_rank_agree(case):
    check_traces(SAMPLES[case], "rank")


@pytest.mark.parametrize("case", SAMPLES)
def test_dtypes_are_numpys(case):
    check_dtypes(SAMPLES[case], "float32", "float16", "int32")


@pytest.mark.parametrize("mode", ["linear_ramp", "maximum", "mean", "median", "minimum", "wrap"])
def test_padding_of_integers_rounds_as_numpys(mode):
    x = np.array([[9, 2, 4], [1, 8, 2]])
    got = gt.pad(x, ((2, 3), (1, 0)), mode=mode)
    np.testing.assert_array_equal(got.numpy(), np.pad(x, ((2, 3), (1, 0)), mode=mode))


def test_a_number_has_no_sides_to_pad():
    for mode in ("constant", "edge", "mean", "linear_ramp"):
        assert gt.pad(2.5, 3, mode=mode).shape == np.pad(2.5, 3, mode=mode).shape == ()


def test_complex_values_keep_their_parts():
    z = X + 1j * X[::-1]
    for name in ("pad edge", "hstack", "rot90 1", "compress"):
        ours, theirs, inputs = SAMPLES[name]
        check_two_orders((ours, theirs, [z] * len(inputs)))


# -- what has no gradient --------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(side):
    edges, values = np.array([1.0, 2.0, 2.0, 5.0]), np.array([[0.0, 2.0], [9.0, 5.0]])
    got = gt.searchsorted(edges, values, side=side)
    np.testing.assert_array_equal(got.numpy(), np.searchsorted(edges, values, side=side))
    assert gt.searchsorted(edges, 2.0, side).item() == np.searchsorted(edges, 2.0, side)
    mixed, order = edges[::-1].copy(), np.array([3, 2, 1, 0])
    got = gt.searchsorted(mixed, values, side, sorter=order)
    np.testing.assert_array_equal(got.numpy(), np.searchsorted(edges, values, side=side))
    traced = gt.function(lambda x: gt.searchsorted(edges, x, side))
    np.testing.assert_array_equal(traced(values).numpy(), np.searchsorted(edges, values, side))


def test_unique_in_all_its_forms():
    x = np.array([[3, 1, 3], [2, 1, 3]])
    for ours, theirs in zip(
        gt.unique(x, return_index=True, return_inverse=True, return_counts=True),
        np.unique(x, return_index=True, return_inverse=True, return_counts=True),
        strict=True,
    ):
        np.testing.assert_array_equal(ours.numpy(), theirs)
    assert gt.unique(x).tolist() == [1, 2, 3]
    assert [y.tolist() for y in gt.unique_counts(x)] == [[1, 2, 3], [2, 1, 3]]
    assert gt.unique_inverse(x)[1].shape == (2, 3)
    assert len(gt.unique_all(x)) == 4
    assert gt.unique_values(x).tolist() == [1, 2, 3]
    assert gt.function(gt.unique)(gt.constant(x)).tolist() == [1, 2, 3]
    t = gt.constant([1.0, 1.0])
    with gt.GradientTape() as tape:
        tape.watch(t)
        y = gt.unique(t)
    assert tape.gradient(y, t) is None


def test_positions_of_what_is_not_zero():
    x = np.array([[3, 0, 2], [0, 1, 5]])
    for ours, theirs in zip(gt.nonzero(x), np.nonzero(x), strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)
    np.testing.assert_array_equal(gt.argwhere(x).numpy(), np.argwhere(x))
    np.testing.assert_array_equal(gt.flatnonzero(x).numpy(), np.flatnonzero(x))
    traced = gt.function(gt.nonzero)(gt.constant(x))
    np.testing.assert_array_equal(traced[1].numpy(), np.nonzero(x)[1])


def test_isin_and_argpartition():
    x = np.array([[3, 0, 2], [0, 1, 5]])
    np.testing.assert_array_equal(gt.isin(x, [0, 5]).numpy(), np.isin(x, [0, 5]))
    assert gt.isin(x, [0, 5], invert=True).sum().item() == 3
    indices = gt.argpartition(X, 1, axis=0)
    np.testing.assert_array_equal(indices.numpy(), np.argpartition(X, 1, axis=0))


PORTABLE = [
    ("searchsorted", [np.sort(V), V], {}),
    ("argpartition", [V], {"kth": 2}),
    ("choose_checked", [NUMBERS], {"count": 3}),
    ("pad_picked", [X], {"pad_width": BOTH, "mode": "reflect"}),
    ("unpad_picked_like", [np.pad(X, BOTH, "edge"), X], {"pad_width": BOTH, "mode": "edge"}),
    ("pad_ramp", [X], {"axis": 1, "width": (2, 1)}),
    ("nonzero", [MASK], {}),
    ("numbered_like", [X], {}),
    ("flatten_last", [Y], {"count": 2}),
    ("quantile_rank", [X], {"q": (0.1, 0.5), "method": "linear"}),
    ("nanargmax", [X], {"axis": 1}),
    ("sort", [X], {"axis": 0}),
    ("sort_order", [X], {"axis": 1}),
    ("unsort", [X, np.argsort(X, axis=1)], {"axis": 1}),
    ("difference", [X], {"axis": 0}),
    ("difference_adjoint", [X[1:], X], {"axis": 0}),
]


@pytest.mark.parametrize(("name", "inputs", "params"), PORTABLE, ids=lambda x: str(x)[:20])
def test_portable_kernels_run_on_a_strict_library(name, inputs, params):
    op = gt.registry().ops[name]
    got = op.kernel(strict, *map(strict.asarray, inputs), **params)
    want = op.raw(*inputs, **params)
    got, want = (list(y) if isinstance(y, (list, tuple)) else [y] for y in (got, want))
    for mine, theirs in zip(got, want, strict=True):
        if name == "argpartition":
            mine, theirs = V[np.asarray(mine)[2]], V[theirs[2]]
        np.testing.assert_allclose(np.asarray(mine), theirs, rtol=1e-14)


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: gt.hstack([]), ValueError, "hstack.*none"),
        (lambda x: gt.vstack([x, x[:, :1]]), ValueError, "vstack"),
        (lambda x: gt.block([[x], x]), ValueError, "block.*depths"),
        (lambda x: gt.block([[]]), ValueError, "block.*empty"),
        (lambda x: gt.array_split(x, 0), ValueError, "array_split.*at least 1"),
        (lambda x: gt.array_split(x, 2, axis=2), ValueError, "array_split.*axis 2"),
        (lambda x: gt.hsplit(x[0, 0], 1), ValueError, r"hsplit.*\(\)"),
        (lambda x: gt.vsplit(x[0], 1), ValueError, r"vsplit.*\(4,\)"),
        (lambda x: gt.dsplit(x, 1), ValueError, r"dsplit.*\(3, 4\)"),
        (lambda x: gt.fliplr(x[0]), ValueError, r"fliplr.*\(4,\)"),
        (lambda x: gt.rot90(x, axes=(0, 0)), ValueError, "rot90.*duplicate"),
        (lambda x: gt.rot90(x, axes=(0, 1, 1)), ValueError, "rot90.*two axes"),
        (lambda x: gt.rollaxis(x, 0, 4), ValueError, "rollaxis.*4"),
        (lambda x: gt.broadcast_arrays(x, gt.ones(3)), ValueError, "broadcast_arrays"),
        (lambda x: gt.meshgrid(x[0], indexing="yx"), ValueError, "meshgrid.*'yx'"),
        (lambda x: gt.pad(x, 1, mode="edgy"), ValueError, "pad.*'edgy'.*reflect"),
        (lambda x: gt.pad(x[:0], 1, mode="edge"), ValueError, "pad"),
        (lambda x: gt.pad(x[:0], 1, mode="mean"), ValueError, "pad.*empty axis 0"),
        (lambda x: gt.pad(x, 1, mode="mean", stat_length=0), ValueError, "stat_length"),
        (lambda x: gt.pad(x, 1, mode="linear_ramp", end_values="a"), ValueError, "end_values"),
        (lambda x: gt.compress([[True]], x), ValueError, r"compress.*\(1, 1\)"),
        (lambda x: gt.compress([True] * 9, x, 0), IndexError, "(compress|take).*4"),
        (lambda x: gt.select([], []), ValueError, "select.*0 conditions"),
        (lambda x: gt.select([x], [x]), TypeError, "select.*float64"),
        (lambda x: gt.choose([7, 0, 0, 0], [x, x]), ValueError, "choose.*2 choices"),
        (lambda x: gt.choose(x, [x]), TypeError, "choose.*float64"),
        (lambda x: gt.choose([0], [x], mode="loop"), ValueError, "choose.*'loop'"),
        (lambda x: gt.partition(x, 4), ValueError, "partition.*4"),
        (lambda x: gt.partition(x, 1.5), TypeError, "partition.*1.5"),
        (lambda x: gt.searchsorted(x, 1.0), ValueError, r"searchsorted"),
        (lambda x: gt.searchsorted(x[0], 1.0, "both"), ValueError, "searchsorted.*'both'"),
        (lambda x: gt.nonzero(x[0, 0]), ValueError, "nonzero"),
    ],
)
def test_errors_name_the_op_eagerly_and_traced(call, error, words):
    for run in (call, gt.function(call)):
        with pytest.raises(error, match=f"(?s){words}"):
            run(gt.constant(X))


def test_a_split_of_unknown_size_says_what_to_pass():
    split = gt.function(
        lambda x: gt.array_split(x, 2)[0], input_signature=[gt.TensorSpec([None], "float64")]
    )
    with pytest.raises(ValueError, match=r"array_split.*where to cut"):
        split(V)
