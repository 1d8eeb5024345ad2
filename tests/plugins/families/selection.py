"""Arranging, padding, choosing."""

from __future__ import annotations

import numpy as np

import gradtape as gt

from .family import Family, each

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4))
Y = RNG.standard_normal((2, 3, 4))
V, W = RNG.standard_normal(4), RNG.standard_normal(4)
POINT = np.array(0.7)
MASK = X > 0
NUMBERS = np.array([[2, 0, 1, 1]])


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


KERNELS = [
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

ERRORS = [
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
    (lambda x: gt.choose([7, 0, 0, 0], [x, x]), ValueError, "choose.*not from 0 to 1"),
    (lambda x: gt.choose(x, [x]), TypeError, "choose.*float64"),
    (lambda x: gt.choose([0], [x], mode="loop"), ValueError, "choose.*'loop'"),
    (lambda x: gt.partition(x, 4), ValueError, "partition.*4"),
    (lambda x: gt.partition(x, 1.5), TypeError, "partition.*1.5"),
    (lambda x: gt.searchsorted(x, 1.0), ValueError, r"searchsorted"),
    (lambda x: gt.searchsorted(x[0], 1.0, "both"), ValueError, "searchsorted.*'both'"),
    (lambda x: gt.nonzero(x[0, 0]), ValueError, "nonzero"),
]

FAMILY = Family(
    samples=SAMPLES,
    errors=ERRORS,
    given=[X],
    values={"rtol": 1e-13},
    squared=True,
    traces=[
        *((k, x, "nothing" if k in SIZES else "sizes") for k, x in SAMPLES.items()),
        *((name, SAMPLES[name], "rank") for name in RANKLESS),
    ],
    dtypes=[(k, x, ("float32", "float16", "int32")) for k, x in SAMPLES.items()],
    kernels=KERNELS,
)
