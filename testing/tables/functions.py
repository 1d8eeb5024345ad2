"""Samples of the public functions that are not ops themselves, but made of ops.

The keys are the names under ``gradtape``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt

from ..samples import Sample
from .drawing import complexes, near_identity, positive, real, spread_numbers

X, P, Z, V, CUBE = real(3, 4), positive(3, 4), complexes(3, 4), real(4), real(2, 3, 2)
N = np.array([[3, -2, 5], [1, 4, 3]])
TRUTH = np.array([[True, False, True, True], [False, True, True, False], [True, True, False, True]])
GAPS = X.copy()
GAPS[0, 1] = GAPS[2, 3] = np.nan
APART = spread_numbers(3, 4)
MISSING = APART.copy()
MISSING[1, 2] = np.nan
IMAGES, SIGNAL = real(1, 4, 4, 2), real(2, 5, 2)
SHARES = positive(3, 4) / 4.0
LABELS = np.array([1, 0, 3])
ROOTED = np.array([1.3, -2.0, 0.7, 1.1])
UNEVEN = np.array([0.0, 0.4, 1.1, 1.5])

SIZES = "its computation depends on the sizes"
COUNTED = "the size of the result depends on the values"
KNOWN = "it needs known sizes; the error says so"
VALUES = "it needs known values; the error says so"
JUMPS = "its results jump, so they have no gradient"
IN_DTYPE = "the dtype is an argument"
GRADIENTS = ("gradients", "second order")
SHAPELESS = ("unknown sizes", "unknown rank")
TRACES = ("traced", "known sizes", *SHAPELESS, "saved")


def known(*inputs: Any, **params: Any) -> Sample:
    """Return a sample of a function that needs known sizes."""
    return Sample(*inputs, **params).without(*SHAPELESS, reason=KNOWN)


def eager(*inputs: Any, **params: Any) -> Sample:
    """Return a sample of a function that needs known values."""
    return Sample(*inputs, **params).without(*TRACES, reason=VALUES)


def jumping(*inputs: Any, **params: Any) -> Sample:
    """Return a sample of a function of floats that has no gradient."""
    return Sample(*inputs, **params).without(*GRADIENTS, reason=JUMPS)


def counted(*inputs: Any, **params: Any) -> Sample:
    """Return a sample whose result has a size that depends on the values."""
    return Sample(*inputs, **params).without("known sizes", reason=COUNTED)


def listed(*arrays: Any, **params: Any) -> Sample:
    """Return a sample of a function that takes one list of tensors."""
    return Sample(*arrays, **params).fed_through(lambda *tensors: (list(tensors),))


def norms(*inputs: Any, **params: Any) -> list[Sample]:
    """Return a sample for each norm mode of a Fourier transform."""
    return [Sample(*inputs, norm=norm, **params) for norm in ("backward", "ortho", "forward")]


SAMPLES: dict[str, list[Sample]] = {
    # extrema, order statistics, and reductions that skip nan
    "ptp": [Sample(APART), Sample(APART, axis=0)],
    "median": [Sample(APART), Sample(APART, axis=1), Sample(APART[:, :3], axis=1, keepdims=True)],
    "quantile": [Sample(APART, 0.3), Sample(APART, q=(0.1, 0.75), axis=0)],
    "percentile": [Sample(APART, 30.0), Sample(APART, q=(10.0, 75.0), axis=0, method="lower")],
    "nanmax": [Sample(MISSING), Sample(MISSING, axis=1)],
    "nanmin": [Sample(MISSING), Sample(MISSING, axis=1)],
    **{
        name: [Sample(GAPS), Sample(GAPS, axis=1), Sample(Z)]
        for name in ("nansum", "nanprod", "nanmean", "nanvar", "nanstd")
    },
    "nancumsum": [Sample(GAPS, axis=1), Sample(GAPS)],
    "nancumprod": [Sample(GAPS, axis=1), Sample(GAPS)],
    "nanmedian": [Sample(MISSING), Sample(MISSING, axis=1)],
    "nanquantile": [Sample(MISSING, 0.3), Sample(MISSING, 0.4, axis=1)],
    "nanpercentile": [Sample(MISSING, 30.0), Sample(MISSING, 40.0, axis=1)],
    "average": [Sample(X), Sample(X, 0, P), Sample(Z, axis=1)],
    "cov": [
        Sample(X),
        Sample(X, X[::-1] * P),
        Sample(X, rowvar=False, bias=True),
        Sample(X, P[0]).fed_through(lambda x, w: (x, None, True, False, None, None, w)),
        Sample(Z, fweights=(1, 2, 1, 3), aweights=(0.3, 1.0, 0.5, 2.0)),
    ],
    "corrcoef": [Sample(X), Sample(X, rowvar=False)],
    # joining, splitting, rotating
    "append": [Sample(X, P), Sample(X, Z, axis=0)],
    "block": [Sample(X, P[:, :1]).fed_through(lambda a, b: ([[a, b], [b, a]],)), listed(V, V[:2])],
    "broadcast_arrays": [Sample(X, V), Sample(Z[:, :1], X)],
    "column_stack": [listed(V, P.T), listed(V, V * 2)],
    **{name: [listed(X, P), listed(Z, X)] for name in ("dstack", "hstack", "vstack")},
    "array_split": [known(X, 3, axis=1), Sample(Z, indices_or_sections=(1, 3), axis=1)],
    "hsplit": [Sample(X, 2), Sample(Z, indices_or_sections=(1, 3))],
    "vsplit": [Sample(X, 3), Sample(Z, indices_or_sections=(1,))],
    "dsplit": [Sample(CUBE, 2)],
    "atleast_1d": [Sample(X[0, 0], V), Sample(X)],
    "atleast_2d": [Sample(V, X), Sample(X[0, 0])],
    "atleast_3d": [Sample(V, X), Sample(CUBE)],
    "fliplr": [Sample(X), Sample(Z)],
    "flipud": [Sample(X), Sample(Z)],
    "rot90": [*(Sample(X, k=k) for k in (0, 1, 2, 3)), Sample(CUBE, axes=(1, 2))],
    "rollaxis": [Sample(CUBE, 2), Sample(CUBE, 0, 3)],
    "permute_dims": [Sample(CUBE, axes=(2, 0, 1)), Sample(Z, axes=(1, 0))],
    "matrix_transpose": [Sample(CUBE), Sample(Z)],
    "ravel": [Sample(X), Sample(Z), Sample(X, order="F"), Sample(CUBE, order="F")],
    "meshgrid": [Sample(V, X[:, 0]), Sample(V, X[:, 0], indexing="ij", sparse=True)],
    "delete": [known(X, 1), known(X, obj=(0, 2), axis=1), known(Z, obj=slice(0, 2), axis=0)],
    "insert": [
        known(X, 1, 0.5),
        known(Z, -1, X[:2], 0),
        known(X, P[:, :2]).fed_through(lambda x, v: (x, (0, 2), v, 1)),
    ],
    "resize": [known(X, new_shape=(2, 9)), known(Z, 5)],
    "trim_zeros": [
        eager(V).fed_through(lambda x: (x * np.array([0.0, 0.0, 1.0, 0.0]),)),
        eager(X, axis=1).fed_through(lambda x: (x * np.array([0.0, 1.0, 1.0, 0.0]),)),
    ],
    "diagflat": [Sample(X), Sample(Z[0], k=-1)],
    # selection
    "argwhere": [counted(N), counted(TRUTH)],
    "digitize": [
        Sample(X, UNEVEN).without(*SHAPELESS, reason=KNOWN),
        Sample(X, UNEVEN[::-1].copy(), right=True).without(*SHAPELESS, reason=KNOWN),
    ],
    "lexsort": [listed(N[0], N[1]), known(N), listed(N, N % 2, axis=0)],
    "flatnonzero": [counted(N), counted(TRUTH)],
    "compress": [Sample(TRUTH[0], X, 1).without("known sizes", reason=COUNTED)],
    "extract": [counted(TRUTH, X), counted(TRUTH, Z)],
    "select": [
        Sample(TRUTH, X, P).fed_through(lambda c, x, p: ([c, ~c], [x, p])),
        Sample(TRUTH, X, Z).fed_through(lambda c, x, z: ([c], [x], z)),
    ],
    "choose": [Sample(np.array([1, 0, 2, 1]), X[0], X[1], V).fed_through(lambda n, *c: (n, c))],
    "piecewise": [
        counted(X).fed_through(lambda x: (x, [x < 0, x > 1], [gt.sin, gt.square, gt.exp])),
        counted(X).fed_through(lambda x: (x, [x < 0], [lambda v: v * 3.0, 2.0])),
    ],
    "partition": [Sample(APART, 1), Sample(APART, 2, axis=0)],
    "gather": [Sample(X, LABELS, axis=1), Sample(Z, N[1:] % 3)],
    "put_along_axis": [
        Sample(X, LABELS[:, None], P[:, :1], 1),
        Sample(Z, LABELS, X[0, 0], axis=None),
    ],
    **{
        f"unique_{what}": [counted(N), counted(APART)]
        for what in ("all", "counts", "inverse", "values")
    },
    "union1d": [counted(N, np.array([3, 9])), counted(APART, -APART[0])],
    "intersect1d": [
        counted(N, np.array([3, 9, 1])),
        counted(N, N[0], return_indices=True),
        counted(APART).fed_through(lambda x: (x, x[1])),
    ],
    "setdiff1d": [counted(N, np.array([3, 9])), counted(APART).fed_through(lambda x: (x, x[1]))],
    "setxor1d": [counted(N, np.array([3, 9])), counted(APART).fed_through(lambda x: (x, x[1]))],
    # elementwise
    "around": [Sample(X), Sample(np.array([0.32, -1.28]), 1)],
    "rint": [Sample(X)],
    "divmod": [Sample(np.array([5.3, -3.4, 2.6]), np.array([2.0, -1.5])[:, None])],
    "modf": [Sample(3.3 * X)],
    "frexp": [Sample(3.3 * X), Sample(np.array([0.3, -5.0]))],
    "float_power": [Sample(P, X), Sample(X, 3), Sample(Z, 2.5)],
    "i0": [Sample(X), Sample(4.0 * X)],
    "real_if_close": [eager(Z).without("batched", reason=VALUES), eager(X)],
    "isclose": [Sample(X, X * 1.000001), Sample(N, N[0])],
    "allclose": [Sample(X, X * 1.000001), Sample(X, P)],
    "array_equal": [known(X, X), known(GAPS, GAPS, True), known(X, V)],
    **{
        name: [Sample(X), Sample(np.array([np.inf, -np.inf, 1.0]))]
        for name in ("isneginf", "isposinf")
    },
    "astype": [
        Sample(X, dtype="float64"),
        Sample(X, dtype="complex128").without("float32", "float16", reason=IN_DTYPE),
    ],
    "copy": [Sample(X), Sample(Z)],
    "asarray": [Sample(X), Sample(Z, copy=True)],
    "clip_by_norm": [Sample(X, 0.7), Sample(X, 0.7, axes=(1,)), Sample(X, 99.0)],
    # differences, integrals, interpolation, polynomials
    "diff": [Sample(X), Sample(Z, 2, 0), Sample(X, 1, 1, P[:, :1], 0.5)],
    "ediff1d": [Sample(X), Sample(X, V, V[:1])],
    "gradient": [Sample(X), Sample(X, 0.5, axis=1, edge_order=2), Sample(X, UNEVEN, axis=1)],
    "trapezoid": [Sample(X), Sample(X, UNEVEN), Sample(Z, axis=0, dx=0.5)],
    "cumulative_sum": [Sample(X, axis=1), Sample(Z, axis=0, include_initial=True)],
    **{
        name: [Sample(APART), Sample(APART, axis=-1)]
        for name in ("cumulative_max", "cumulative_min")
    },
    "cumulative_prod": [Sample(X, axis=1), Sample(Z, axis=0, include_initial=True)],
    "interp": [Sample(np.array([0.2, 0.7, 1.2]), UNEVEN, V)],
    "unwrap": [Sample(4.0 * X), Sample(6.0 * X, axis=0, period=5.0)],
    "correlate": [
        Sample(V, V[:2], mode="full"),
        *(
            known(a, b, mode=mode)
            for mode in ("same", "valid")
            for a, b in ((V, V[:3]), (V[:2], V))
        ),
        known(Z[0], Z[1, :2]),
    ],
    "polyval": [
        Sample(V, X).without(*SHAPELESS, reason=KNOWN),
        Sample(Z[0], X).without(*SHAPELESS, reason=KNOWN),
    ],
    **{name: [known(V, X[0, :2]), known(V[:1], Z[0])] for name in ("polyadd", "polysub")},
    "polymul": [Sample(V, X[0, :2]), Sample(N[0], V), Sample(V, Z[0])],
    "polydiv": [x.without("batched", reason=VALUES) for x in (eager(V, V[:2]), eager(Z[0], V[:3]))],
    "polyder": [known(V), known(Z[0], 2)],
    "polyint": [known(V), known(Z[0], 2), known(V, 2, X[0, :2])],
    "vander": [Sample(V, 3), Sample(Z[0], 4, increasing=True), known(np.array([0.0, 2.0, 0.0]))],
    "polyfit": [known(V, X[0], 2), known(V, X.T, 1), known(V, X[1], 1, w=P[0])],
    "poly": [known(V), known(Z[0]), known(near_identity(2, 2))],
    "roots": [
        # their order is arbitrary
        known(ROOTED).seen_through(lambda r: gt.sum(r * r * r)),
        known(Z[0]).seen_through(lambda r: gt.sum(r * r * r)),
    ],
    "apply_along_axis": [
        known(X).fed_through(lambda x: (lambda v: v / gt.sum(v * v), 1, x)),
        known(CUBE).fed_through(lambda x: (gt.logsumexp, 1, x)),
    ],
    # counts
    "histogram": [
        Sample(APART),
        Sample(APART, 3, density=True),
        Sample(X, P).fed_through(lambda x, w: (x, 3, (-2.0, 2.0), None, w)),
        Sample(N, P[:2, :3]).fed_through(lambda n, w: (n, 4, None, True, w)),
        Sample(N, P[:2, :3]).fed_through(lambda n, w: (n, [-2.0, 1.5, 3.5], None, None, w)),
    ],
    "histogram_bin_edges": [Sample(APART, 4), Sample(N, 4), eager(APART, bins="sturges")],
    # new tensors
    "arange": [Sample(1, 7, 2)],
    "empty": [Sample(3)],
    "empty_like": [jumping(X)],
    "eye": [Sample(3), Sample(2, 3, 1)],
    "from_dlpack": [
        eager(X)
        .fed_through(lambda x: (x.numpy(),))
        .without(*GRADIENTS, reason=VALUES)
        .with_backend_selected()
    ],
    "full": [
        Sample(X[0, 0]).fed_through(lambda x: ((2, 3), x)),
        Sample(V).fed_through(lambda x: ((2, 4), x)),
    ],
    "full_like": [Sample(X, V), Sample(X, 2.0)],
    "linspace": [
        Sample(X[0], V, 5),
        Sample(X[0, 0], 3.0, 4, endpoint=False),
        Sample(0.0, 1.0, 5),
        Sample(X[0], V, 5, retstep=True, axis=1),
        Sample(X[0, 0], 3.0, 4, endpoint=False, retstep=True),
    ],
    "logspace": [Sample(X[0], V, 3), Sample(0.5, X[0, 0], 3, True, 3.0), Sample(0.0, 1.0, 3)],
    "geomspace": [Sample(P[0], P[1], 5), Sample(Z[0], Z[1], 3), Sample(1.0, 8.0, 4)],
    "identity": [Sample(3), Sample(0)],
    "array": [Sample(X), Sample(V, ndmin=3)],
    "indices": [Sample(dimensions=(2, 3)), Sample(dimensions=(2, 3), sparse=True)],
    **{name: [Sample(3), Sample(2, 1, 4)] for name in ("tril_indices", "triu_indices")},
    **{name: [known(X), known(X, 1)] for name in ("tril_indices_from", "triu_indices_from")},
    "diag_indices": [Sample(3), Sample(2, 3)],
    "diag_indices_from": [known(X[:, :3])],
    "ix_": [Sample(LABELS, N[0]), eager(TRUTH[0], LABELS).without("batched", reason=VALUES)],
    "fill_diagonal": [
        known(X, P[0, 0]),
        known(X.T.copy(), V[:2], True),
        known(Z[:, :3], V),
    ],
    **{name: [Sample(5)] for name in ("bartlett", "blackman", "hamming", "hanning")},
    "kaiser": [
        Sample(5, 3.0),
        Sample(P[0, 0]).fed_through(lambda beta: (6, beta)),
        Sample(P[0, 1]).fed_through(lambda beta: (1, beta)),
    ],
    "ones": [Sample(3)],
    "tri": [Sample(3), Sample(2, 3, 1)],
    "zeros": [Sample(3)],
    # products and linear algebra
    "dot": [Sample(X, P.T), Sample(Z[0], V)],
    "inner": [Sample(X, P), Sample(Z[0], V)],
    "outer": [Sample(X, V), Sample(Z[0], V)],
    "kron": [Sample(X[:2, :2], P[:2]), Sample(Z[0, :2], V[:3])],
    "vdot": [Sample(X, P), Sample(Z, X)],
    "vecdot": [Sample(X, V), Sample(Z, Z[:1] * 2), Sample(X, P, axis=0)],
    "matvec": [Sample(CUBE, X[0, :2]), Sample(Z, X), Sample(near_identity(3, 3), V[:3])],
    "vecmat": [Sample(X[0, :3], CUBE), Sample(Z[0, :3], X)],
    "trace": [Sample(X), Sample(CUBE, 1), Sample(Z)],
    "linalg.trace": [Sample(X), Sample(CUBE, 1), Sample(Z, -1)],
    "cross": [known(X[:, :3], P[:, :3]), known(X.T[:3], P.T[:3], axis=0)],
    "linalg.cond": [Sample(near_identity(3, 3)), Sample(near_identity(3, 3), 1)],
    "linalg.lstsq": [known(near_identity(4, 2), V).seen_through(lambda x, *rest: x)],
    "linalg.matrix_norm": [Sample(X), Sample(Z), Sample(CUBE, ord=1)],
    "linalg.vector_norm": [Sample(X), Sample(Z, axis=1), Sample(X, ord=3)],
    "linalg.matrix_power": [Sample(near_identity(3, 3), n) for n in (0, 3, -2)],
    "linalg.multi_dot": [
        listed(X, P.T, Z).without(*SHAPELESS, reason=KNOWN),
        listed(V, P.T, X).without(*SHAPELESS, reason=KNOWN),
    ],
    "linalg.tensorinv": [
        known(near_identity(4, 4).reshape(2, 2, 4)),
        known(near_identity(2, 2), 1),
    ],
    "linalg.tensorsolve": [
        known(near_identity(4, 4).reshape(2, 2, 4), X[:2, :2]),
        known(near_identity(4, 4).reshape(2, 2, 4).mT.copy(), X[:2, :2], axes=(1,)),
    ],
    # Fourier transforms
    **{f"fft.{name}": [*norms(Z), Sample(X, 3, 0)] for name in ("fft", "ifft")},
    **{f"fft.{name}": [*norms(Z), Sample(X, s=(2, 5))] for name in ("fft2", "ifft2")},
    "fft.rfft2": [*norms(X), Sample(X, s=(2, 5))],
    "fft.rfftn": [*norms(X), Sample(CUBE, axes=(0, 1))],
    "fft.irfft2": [*norms(Z), Sample(Z, s=(3, 5))],
    "fft.irfftn": [*norms(Z), Sample(complexes(2, 3, 2), axes=(0, 1))],
    "fft.hfft": [*norms(Z), Sample(Z, 5)],
    "fft.ihfft": [*norms(X), Sample(X, 3)],
    "fft.ifftshift": [Sample(X), Sample(Z, axes=1)],
    "fft.fftfreq": [Sample(5), Sample(4, 0.5)],
    "fft.rfftfreq": [Sample(5), Sample(4, 0.5)],
    # networks
    "nn.batch_normalization": [Sample(X, V, P[0], X[1], P[1]), Sample(X, V, P[0])],
    "nn.layer_normalization": [Sample(X, V, P[0]), Sample(CUBE, axis=(1, 2))],
    "nn.group_normalization": [Sample(real(2, 3, 4), 2, V, P[0]), Sample(X, 1)],
    "nn.conv1d": [Sample(SIGNAL, real(2, 2, 3)), Sample(SIGNAL, real(3, 2, 2), 2, padding="same")],
    "nn.conv2d": [
        Sample(IMAGES, real(2, 2, 2, 2)),
        Sample(IMAGES, real(3, 2, 1, 2), 1, 1, groups=2),
    ],
    "nn.depthwise_conv": [
        known(IMAGES, real(2, 2, 2, 1)),
        known(SIGNAL, real(2, 2, 2), 1, padding="same"),
    ],
    "nn.conv1d_transpose": [Sample(SIGNAL, real(2, 3, 2)), Sample(SIGNAL, real(2, 1, 2), 2)],
    "nn.conv2d_transpose": [Sample(IMAGES, real(2, 2, 1, 2)), Sample(IMAGES, real(1, 2, 1, 2), 2)],
    "nn.max_pool1d": [Sample(spread_numbers(2, 4, 1), 2), Sample(spread_numbers(1, 5, 2), 3, 2)],
    "nn.max_pool2d": [Sample(spread_numbers(1, 4, 4, 1), 2)],
    "nn.avg_pool1d": [Sample(SIGNAL, 2), Sample(SIGNAL, 3, 2, padding="same")],
    "nn.avg_pool2d": [Sample(IMAGES, 2)],
    "nn.glu": [Sample(X), Sample(IMAGES, axis=1)],
    "nn.dropout": [
        Sample(X)
        .fed_through(lambda x: (x, 0.4, gt.random.Generator(3)))
        .without("saved", "float32", "batched", reason="the generator is the sample's own")
        .with_backend_selected(),
        Sample(X, 0.4, training=False),
    ],
    "nn.embedding_lookup": [Sample(X, LABELS % 3), Sample(X, N % 3)],
    "nn.cosine_similarity": [Sample(X, P), Sample(X, V, axis=-1)],
    "nn.binary_cross_entropy": [Sample(SHARES, positive(3, 4) / 2.5)],
    "nn.categorical_cross_entropy": [Sample(SHARES, P / 3.0)],
    "nn.kl_divergence": [Sample(SHARES, P / 3.0)],
    "nn.hinge": [Sample(TRUTH, X)],
    "nn.sigmoid_cross_entropy_with_logits": [Sample(SHARES, X)],
    "nn.softmax_cross_entropy_with_logits": [
        Sample(SHARES, X).fed_through(lambda y, x: (gt.nn.softmax(y), x))
    ],
    "nn.sparse_softmax_cross_entropy_with_logits": [Sample(LABELS, X)],
}
