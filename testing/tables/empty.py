"""Samples without elements, for ops that are not elementwise (the others are always checked)."""

from __future__ import annotations

import numpy as np

from ..samples import Sample

NONE, ROWLESS, CUBE = np.zeros((0,)), np.zeros((0, 3)), np.zeros((2, 0, 3))
SQUARES = np.zeros((0, 2, 2))
NOWHERE = np.zeros(0, np.int64)
WIDE = np.arange(12.0).reshape(3, 4)
ROWS = {"index": (("slice", 1, None, None),)}


def one(name: str, *inputs: object, **params: object) -> dict[str, list[Sample]]:
    """Return a table of one sample."""
    return {name: [Sample(*inputs, **params)]}


SAMPLES = {
    **{name: [Sample(NONE), Sample(CUBE, axis=1)] for name in ("sum", "prod", "norm")},
    **{name: [Sample(CUBE, axis=2), Sample(ROWLESS, axis=1)] for name in ("mean", "max", "min")},
    **{name: [Sample(CUBE, axis=2), Sample(ROWLESS, axis=1)] for name in ("var", "std")},
    **{name: [Sample(NONE), Sample(CUBE, axis=1)] for name in ("any", "all", "count_nonzero")},
    **{name: [Sample(ROWLESS, axis=1)] for name in ("argmax", "argmin", "logsumexp")},
    **{
        name: [Sample(NONE, axis=0), Sample(CUBE, axis=1, reverse=True)]
        for name in ("cumsum", "cumprod")
    },
    **one("shift", ROWLESS, axis=0, fill=1),
    **one("product_of_others", ROWLESS, axis=0),
    **one("recurrence", ROWLESS, ROWLESS, axis=0),
    **one("sort", ROWLESS, axis=0),
    **one("argsort", ROWLESS, axis=0),
    **one("searchsorted", NONE, np.array([0.5])),
    **{
        name: [
            Sample(NONE).without(
                "known sizes", reason="the size of the result depends on the values"
            )
        ]
        for name in ("nonzero", "unique")
    },
    **one("reshape", CUBE, shape=(0, 6)),
    **one("reshape_like", CUBE, ROWLESS),
    **one("shaped_like", ROWLESS, ROWLESS, what="x"),
    **one("broadcast_to", np.zeros((1, 3)), shape=(0, 3)),
    **one("broadcast_like", np.ones(3), ROWLESS),
    **one("unbroadcast_like", ROWLESS, np.ones(3)),
    **one("unreduce_like", np.ones(3), ROWLESS, axis=0),
    **one("expand_dims", NONE, axis=0),
    **one("squeeze", np.zeros((1, 0)), axis=0),
    **one("transpose", CUBE),
    **one("flip", CUBE, axis=1),
    **one("roll", CUBE, shift=1, axis=1),
    **one("tril", SQUARES),
    **one("triu", SQUARES),
    **one("diag", NONE, k=1),
    **one("diagonal", SQUARES),
    **one("tile", ROWLESS, reps=(2, 1)),
    **one("repeat", ROWLESS, repeats=2, axis=1),
    **one("pad", ROWLESS, pad_width=((1, 1), (0, 0)), value=2.0),
    **one("concatenate", ROWLESS, np.ones((2, 3)), axis=0),
    **one("stack", NONE, NONE),
    **one("split", ROWLESS, sections=2, axis=0),
    **one("unstack", CUBE, axis=0, num=2),
    **one("getitem", WIDE, NOWHERE, index=(("array", 0),)),
    **one("index_add_like", np.zeros((0, 4)), WIDE, NOWHERE, index=(("array", 0),)),
    **one("index_add_all_like", WIDE, np.zeros((0, 4)), NOWHERE, indices=((("array", 0),),)),
    **one("index_set", WIDE, np.zeros((0, 4)), NOWHERE, index=(("array", 0),)),
    **one("take", WIDE, NOWHERE, axis=1),
    **one("take_adjoint", np.zeros((3, 0)), NOWHERE, WIDE, axis=1),
    **one("take_along_axis", WIDE, np.zeros((3, 0), np.int64), axis=1),
    **one("segment_sum", ROWLESS, NOWHERE, num=2),
    **one("one_hot", NOWHERE, depth=3, dtype="float32"),
    **one("matmul", ROWLESS, WIDE),
    **one("tensordot", ROWLESS, ROWLESS, axes=((0,), (0,))),
    **one("einsum", ROWLESS, WIDE, subscripts="ij,jk->ik"),
    **one("inv", SQUARES),
    **one("det", SQUARES),
    **one("solve", SQUARES, SQUARES),
    **one("cholesky", SQUARES),
    **one("slogdet", SQUARES),
    **one("expm", SQUARES),
    **one("softmax", ROWLESS),
    **one("log_softmax", ROWLESS),
    **one("softmax_cross_entropy", ROWLESS, ROWLESS),
    **one("sparse_softmax_cross_entropy", ROWLESS, NOWHERE),
    **one(
        "conv",
        np.zeros((0, 4, 2)),
        np.ones((2, 2, 3)),
        strides=(1,),
        padding=((0, 0),),
        dilations=(1,),
    ),
    **one("max_pool", np.zeros((0, 4, 2)), window=(2,), strides=(2,), padding=((0, 0),)),
    **one("avg_pool", np.zeros((0, 4, 2)), window=(2,), strides=(2,), padding=((0, 0),)),
    **one("fftn", ROWLESS, axes=(1,), norm="backward"),
    **one("rfft", ROWLESS, axis=1, norm="backward"),
    **one("irfft", ROWLESS, n=4, axis=1, norm="backward"),
}
