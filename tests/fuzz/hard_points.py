"""Hard points, where ops may fail, and the calls that are tried there."""

from __future__ import annotations

import random

import numpy as np

import gradtape as gt
from fuzz.program import Array

__all__ = ["MATRICES", "PAIRS", "SINGLES", "TWO_VECTORS", "VECTORS", "elementwise", "hard"]

#: Points of elementwise functions.
SINGLES = (
    *(0.0, -0.0, 5e-324, 1e-310, -1e-310, 1e-200, 1e-30, -1e-30, 1e-8, 1e-4, -1e-4, 0.5, -0.5),
    *(1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 6.0, 20.0, -20.0, 37.5, -37.5, 90.0, -90.0, 710.0, -710.0),
    *(1e4, -1e4, 1e8, -1e8, 1e16, -1e16, 1e30, -1e30, 1e155, -1e155, 1e200, -1e200, 1e300),
)
PAIRS = (0.0, -0.0, 1e-200, -1e-30, 0.5, 1.0, -1.0, 2.0, -3.0, 50.0, 1e8, 1e30, -1e155, 1e200)
SCALES = (1.0, 1e200, 1e-200, 1e155, 1e-155, 1e30, 1e-30, 1e8, 1e-8)
MIXED = (0.0, -0.0, 1.0, 1.0, -1.0, 2.0, 0.5, 1e-300, 1e200, -1e200, 1e-200, 1e8)
NOT_FINITE = (np.inf, -np.inf, np.nan)

VECTORS: tuple[str, ...] = (
    *(
        f"gt.{name}(x)"
        for name in (
            "sum mean prod var std max min ptp median logsumexp cumsum cumprod cumulative_max sort "
            "diff nansum nanmean nanprod nanvar nanstd nanmax nanmin nanmedian cumulative_min "
            "trapezoid unique linalg.norm linalg.vector_norm nn.softmax nn.log_softmax ediff1d "
            "nn.layer_normalization cumulative_sum nan_to_num gradient vander cumulative_prod "
            "nancumsum nancumprod flip"
        ).split()
    ),
    *(f"gt.linalg.norm(x, {o})" for o in ("1", "2", "3", "4.5", "np.inf", "-np.inf", "0.5")),
    *("gt.quantile(x, 0.3)", "gt.percentile(x, 50.0)", "gt.average(x, weights=gt.abs(x) + 1.0)"),
    *("gt.nanquantile(x, 0.7)", "gt.partition(x, 0)", "gt.unwrap(x)", "gt.clip_by_norm(x, 1.0)"),
    *("x / gt.linalg.norm(x)", "gt.abs(x) * gt.abs(x)", "gt.dot(x, x)", "gt.outer(x, x)"),
    *("gt.vdot(x, x)", "gt.einsum('i,i->', x, x)", "gt.square(x).sum()", "gt.cov(x)"),
    *("gt.convolve(x, x)", "gt.polyval(x, 0.5)", "gt.interp(x, [0.0, 1.0, 2.0], [0.0, 3.0, 1.0])"),
    "gt.nn.cosine_similarity(x, x[::-1])",
    "gt.nn.softmax_cross_entropy_with_logits(labels=gt.nn.softmax(gt.ones_like(x)), logits=x)",
    "gt.nn.sparse_softmax_cross_entropy_with_logits(labels=np.array(0), logits=x)",
    "gt.nn.sigmoid_cross_entropy_with_logits(labels=gt.ones_like(x) * 0.3, logits=x)",
    "gt.nn.kl_divergence(labels=gt.nn.softmax(x), probabilities=gt.nn.softmax(-x))",
    "gt.nn.huber(labels=gt.zeros_like(x), predictions=x)",
    "gt.nn.hinge(labels=gt.ones_like(x), predictions=x)",
    "gt.nn.max_pool1d(gt.reshape(x, (1, -1, 1)), 2, 1)",
    "gt.nn.avg_pool1d(gt.reshape(x, (1, -1, 1)), 2, 1)",
    "gt.nn.batch_normalization(x, gt.mean(x), gt.var(x))",
    "gt.nn.group_normalization(gt.reshape(x, (1, 1, -1)), 1)",
    "gt.scan(lambda c, a: (gt.logaddexp(c, a), c), 0.0, x)[0]",
    "gt.where(x > 0.0, gt.sqrt(gt.abs(x)), x)",
    "gt.cond(gt.sum(x) > 0.0, lambda a: gt.tanh(a), lambda a: a, x)",
)
#: Functions that select, or are piecewise constant: a gradient, or the op's name from explain.
VECTORS += (
    *("gt.union1d(x, -x)", "gt.intersect1d(x, x[1:])", "gt.setdiff1d(x, x[:1])"),
    *("gt.setxor1d(x, x[:1])", "gt.nextafter(x, 2.5)", "gt.histogram_bin_edges(x, 3)"),
    *("gt.unique_counts(x).values", "gt.floor(x)", "gt.cast(gt.argsort(x), 'float64')"),
    *("gt.spacing(x)", "gt.cast(gt.cast(x, 'int64'), 'float64')", "gt.sign(x)", "gt.rint(x)"),
    "gt.cast(gt.count_nonzero(x), 'float64')",
)
#: Calls with two vectors of one length.
TWO_VECTORS: tuple[str, ...] = (
    *("gt.dot(x, y)", "gt.outer(x, y)", "gt.convolve(x, y)", "gt.where(x > 0.5, x, y)"),
    *("gt.concatenate([x, y])", "gt.stack([x, y])", "gt.cross(x, y)", "gt.kron(x, y)"),
    *("gt.linalg.solve(gt.eye(2, dtype=x.dtype) * 2.0, x + y)", "gt.interp(y, [0.0, 1.0], x)"),
    *(
        "gt.average(x, weights=gt.abs(y) + 1)",
        "gt.quantile(x, gt.clip(y, 0, 1))",
        "gt.clip(x, y, 3)",
    ),
    "gt.nn.sigmoid_cross_entropy_with_logits(labels=gt.clip(x, 0, 1), logits=y)",
    "gt.nn.softmax_cross_entropy_with_logits(labels=x / gt.sum(x), logits=y)",
    "gt.training.losses.mean_squared_error(x, y)",
    "gt.nn.cosine_similarity(x, y)",
    "gt.polyval(x, y)",
    "x @ y",
)
MATRICES: tuple[str, ...] = (
    *(
        f"gt.linalg.{name}(x)"
        for name in "det inv pinv svdvals norm matrix_norm expm cond trace".split()
    ),
    *("gt.linalg.slogdet(x)[1]", "gt.linalg.norm(x, 'nuc')", "gt.linalg.norm(x, 2)", "x @ x"),
    *("gt.linalg.norm(x, -2)", "gt.linalg.norm(x, 1)", "gt.linalg.norm(x, np.inf)"),
    *("gt.linalg.matrix_power(x, 3)", "gt.linalg.solve(x, gt.ones_like(x))", "gt.linalg.qr(x)[1]"),
    "gt.linalg.eigvalsh(x + gt.matrix_transpose(x))",
    "gt.linalg.cholesky(x @ gt.matrix_transpose(x))",
    "gt.sum(gt.linalg.svdvals(x) ** 2)",
    "gt.linalg.lstsq(x, gt.ones_like(x))[0]",
)


def elementwise(inputs: int) -> list[str]:
    """Return the calls of differentiable elementwise ops of real tensors, from the registry."""
    found = []
    for name, op in sorted(gt.registry().ops.items()):
        if "::" in name:  # a third party's, or a late one of SciPy, which only some programs load
            continue
        required = [x for x in op.inputs if x != "like"]
        if op.batch == "elementwise" and op.differentiable and len(required) == inputs:
            found.append(f"ops[{name!r}]({', '.join('xyz'[:inputs])})")
    return found


def hard(rng: random.Random, shape: tuple[int, ...]) -> Array:
    """Return an array at a hard point: tied, scaled, mixed, of low rank, not finite."""
    size = int(np.prod(shape))
    kind = rng.choice(
        ["tied", "zeros", "scaled", "scaled", "mixed", "integers", "one", "rank", "not"]
    )
    plain = np.array([round(rng.uniform(-2, 2), 3) for _ in range(size)])
    if kind == "tied":
        plain = np.full(size, rng.choice(MIXED))
    elif kind == "zeros":
        plain = plain * 0.0
    elif kind == "scaled":
        plain = plain * rng.choice(SCALES)
    elif kind == "mixed":
        plain = np.array([rng.choice(MIXED) for _ in range(size)])
    elif kind == "integers":
        plain = np.array([float(rng.randint(-1, 2)) for _ in range(size)])
    elif kind == "one" and size:
        plain[rng.randrange(size)] = rng.choice(MIXED)
    elif kind == "not" and len(shape) == 1 and size:
        plain[rng.randrange(size)] = rng.choice(NOT_FINITE)
    elif kind == "rank" and len(shape) == 2:
        return np.outer(plain[: shape[0]], np.ones(shape[1]))
    return plain.reshape(shape)
