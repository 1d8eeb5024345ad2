"""Samples of ops that arrange, join, select and pad elements, and of their adjoints."""

from __future__ import annotations

import numpy as np

from ..samples import Sample
from .drawing import complexes, real

X, Z, CUBE, V = real(2, 3), complexes(2, 3), real(2, 3, 2), real(3)
WIDE = real(3, 4)
I = np.array([0, 2, 2])  # noqa: E741 - indices
ROWS = {"index": (("slice", 1, None, None),)}
PICKS = {"index": (("array", 0), ("array", 1))}
MASK = {"index": (("array", 0),)}
FOUND = "the size of the result depends on the values"
COUNTED = "its computation depends on the sizes"
MODES = ("edge", "reflect", "symmetric", "wrap")
JOIN = {"axes": ((1,), (1,))}

SAMPLES = {
    "reshape": [Sample(X, shape=(3, 2)), Sample(Z, shape=(-1,)), Sample(X, shape=(1, 6, 1))],
    "reshape_like": [Sample(X, X.T), Sample(Z, X.reshape(6))],
    "shaped_like": [Sample(X, X + 1, what="x"), Sample(Z, X[:2, :3], what="x")],
    "insert_axes": [
        Sample(V, places=((0, 1), (0,))),
        Sample(Z, places=((0, 1, 2), (0, 2), (2,))),
        Sample(X, places=((0,),)),
    ],
    "drop_column_like": [Sample(V[:, None], V), Sample(X, X), Sample(Z[..., None], V)],
    "broadcast_to": [Sample(X, shape=(4, 2, 3)), Sample(Z[:1], shape=(2, 3))],
    "broadcast_like": [Sample(X[0], CUBE[:, 0, :1] + X), Sample(Z[:, :1], X)],
    "unbroadcast_like": [Sample(X, X[:1]), Sample(X, X[0, 0]), Sample(Z, Z[0])],
    "unreduce_like": [
        Sample(X[0], X, axis=0),
        Sample(X[0, 0], X),
        Sample(Z[:, :1], Z, axis=1, keepdims=True),
    ],
    "expand_dims": [Sample(X, axis=-1), Sample(Z, axis=(0, 2))],
    "squeeze": [
        Sample(X[None], axis=0),
        Sample(X[None, :, None], axis=(0, 2)),
        Sample(Z[:1]).without("unknown sizes", reason=COUNTED),
    ],
    "transpose": [Sample(X), Sample(CUBE, axes=(2, 0, 1)), Sample(Z)],
    "moveaxis": [
        Sample(CUBE, source=(0,), destination=(2,)),
        Sample(Z, source=(0, 1), destination=(1, 0)),
    ],
    "swapaxes": [Sample(CUBE, axis1=0, axis2=2), Sample(Z, axis1=0, axis2=-1)],
    "flip": [Sample(X), Sample(CUBE, axis=(0, -1)), Sample(Z, axis=1)],
    "roll": [Sample(X, shift=2), Sample(X, shift=1, axis=1), Sample(Z, shift=(1, -1), axis=(0, 1))],
    "tril": [Sample(X), Sample(Z, k=1), Sample(CUBE, k=-1), Sample(X[0])],
    "triu": [Sample(X), Sample(Z, k=1), Sample(CUBE, k=-1), Sample(Z[0], k=1)],
    "diag": [Sample(V), Sample(X[0], k=-1), Sample(X, k=1), Sample(Z)],
    "diagonal": [Sample(X), Sample(CUBE, offset=1), Sample(Z, offset=-1)],
    "diagonal_adjoint": [Sample(V[:2], X, offset=0), Sample(Z[:, :2], CUBE, offset=0)],
    "merge_pairs": [Sample(real(2, 3, 2, 2)), Sample(Z)],
    "flatten_last": [Sample(CUBE, count=2), Sample(Z, count=2)],
    "split_channels": [Sample(complexes(2, 4), groups=2), Sample(real(2, 4), groups=2)],
    "tile": [Sample(X, reps=(2, 1)), Sample(Z, reps=(2,)), Sample(X, reps=(2, 1, 2))],
    "untile_like": [
        Sample(np.tile(X, (2, 1)), X, reps=(2, 1)),
        Sample(np.tile(Z, 2), Z, reps=(2,)),
    ],
    "repeat": [Sample(X, repeats=2, axis=0), Sample(Z, repeats=3)],
    "unrepeat_like": [
        Sample(np.repeat(X, 2, 0), X, repeats=2, axis=0),
        Sample(np.repeat(Z, 3, 1), Z, repeats=3, axis=1),
    ],
    "pad": [Sample(X, pad_width=((1, 2),)), Sample(Z, pad_width=((1, 0), (0, 2)), value=2.0)],
    "unpad": [
        Sample(WIDE, pad_width=((1, 1), (0, 2))),
        Sample(complexes(3, 3), pad_width=((1, 0),)),
    ],
    "pad_picked": [
        Sample(Z, pad_width=((1, 1),), mode="reflect"),
        *(Sample(WIDE, pad_width=((1, 2), (2, 1)), mode=mode) for mode in MODES),
    ],
    "unpad_picked_like": [
        Sample(complexes(4, 5), Z, pad_width=((1, 1),), mode="reflect"),
        *(Sample(real(6, 7), WIDE, pad_width=((1, 2), (2, 1)), mode=mode) for mode in MODES),
    ],
    "pad_ramp": [Sample(X, axis=1, width=(2, 1))],
    "crop_or_pad": [Sample(WIDE, sizes=(2, 6), axes=(0, 1)), Sample(Z, sizes=(2,), axes=(1,))],
    "crop_or_pad_like": [Sample(WIDE, real(4, 2), axes=(0, 1)), Sample(Z, real(2, 5), axes=(1,))],
    "concatenate": [Sample(X, WIDE[:2, :1], axis=1), Sample(X, Z), Sample(X)],
    "stack": [Sample(X, X[::-1], axis=1), Sample(X, Z)],
    "split_unevenly": [Sample(WIDE, count=3, axis=1), Sample(Z, count=3, axis=0)],
    "size_value": [Sample(V, value=3, dtype="int64"), Sample(V, value=0.5, dtype="float32")],
    "split": [
        Sample(WIDE, sections=2, axis=1),
        Sample(WIDE, sections=(1, 2), axis=0),
        Sample(Z, sections=(1,), axis=1),
    ],
    "split_like": [Sample(WIDE, WIDE[:1], WIDE[1:], axis=0), Sample(Z, Z[:, :2], Z[:, 2:], axis=1)],
    "unstack": [Sample(X, axis=0, num=2), Sample(Z, axis=1, num=3)],
    "getitem": [
        Sample(WIDE, **ROWS),
        Sample(WIDE, I, I[::-1].copy(), **PICKS),
        Sample(Z, **ROWS),
        Sample(WIDE, WIDE > 0, **MASK).without("known sizes", reason=FOUND),
    ],
    "index_add_like": [
        Sample(WIDE[1:], WIDE, **ROWS),
        Sample(V, WIDE, I, I[::-1].copy(), **PICKS),
        Sample(WIDE[WIDE > 0], WIDE, WIDE > 0, **MASK),
        Sample(Z[1:], Z, **ROWS),
    ],
    "index_add_all_like": [
        Sample(WIDE, WIDE[0], WIDE[1:], indices=((0,), *ROWS.values())),
        Sample(WIDE, V, I, I[::-1].copy(), WIDE[1:], indices=(*PICKS.values(), *ROWS.values())),
        Sample(Z, Z[1:], Z[0], indices=(*ROWS.values(), (0,))),
    ],
    "index_set": [
        Sample(WIDE, real(2, 4), **ROWS),
        Sample(Z, complexes(1, 3), **ROWS),
        Sample(WIDE, V, I, np.array([1, 0, 3]), **PICKS),
        Sample(WIDE, V, I, I, **PICKS),
    ],
    "take": [Sample(WIDE, I, axis=0), Sample(WIDE, I[None]), Sample(Z, I, axis=1)],
    "take_adjoint": [
        Sample(WIDE[I], I, WIDE, axis=0),
        Sample(V[None], I[None], WIDE),
        Sample(Z, I, Z, axis=1),
    ],
    "take_along_axis": [Sample(WIDE, I[:, None], axis=1), Sample(Z, I[None, :] * 0, axis=0)],
    "take_along_axis_adjoint": [
        Sample(WIDE[:, :2], np.stack([I, I], 1), WIDE, axis=1),
        Sample(Z[:, :1], I[:2, None], Z, axis=1),
    ],
    "segment_sum": [
        Sample(Z, I[:2], num=3),
        Sample(WIDE, np.array([1, 0, 1]), num=3),
        Sample(V, I, num=4),
    ],
    "embedding_rows": [Sample(np.array([2, 0, 1]), count=3), Sample(np.array([[1]]), count=2)],
    "one_hot": [Sample(I, depth=4, dtype="float64"), Sample(I[None], depth=3, dtype="int64")],
    # products by axes
    "matmul": [
        Sample(X, WIDE),
        Sample(V, WIDE),
        Sample(X, V),
        Sample(V, V),
        Sample(CUBE, real(2, 2)),
        Sample(real(2, 1, 2, 3), WIDE),
        Sample(Z, Z.T.copy()),
        Sample(X, Z.T.copy()),
    ],
    "matmul_adjoint_x": [
        Sample(real(2, 4), WIDE, X),
        Sample(V[:2], V, X),
        Sample(real(4), WIDE, V),
        Sample(complexes(2, 2), Z.T.copy(), Z),
    ],
    "matmul_adjoint_y": [
        Sample(real(2, 4), X, WIDE),
        Sample(V[:2], X, V),
        Sample(real(4), V, WIDE),
        Sample(complexes(2, 2), Z, Z.T.copy()),
    ],
    "tensordot": [
        Sample(X, real(4, 3), **JOIN),
        Sample(CUBE, CUBE, axes=((0, 1), (0, 1))),
        Sample(Z, Z, **JOIN),
    ],
    "tensordot_adjoint_x": [
        Sample(real(2, 4), real(4, 3), X, **JOIN),
        Sample(complexes(2, 2), Z, Z, **JOIN),
    ],
    "tensordot_adjoint_y": [
        Sample(real(2, 4), X, real(4, 3), **JOIN),
        Sample(complexes(2, 2), Z, Z, **JOIN),
    ],
    "einsum": [
        Sample(X, WIDE, subscripts="ij,jk->ik"),
        Sample(real(3, 3), subscripts="ii->i"),
        Sample(real(3, 3), subscripts="ii->"),
        Sample(CUBE, X, subscripts="ijk,ij->k"),
        Sample(CUBE, real(2, 2), subscripts="...i,ij->...j"),
        Sample(X, WIDE, real(4), subscripts="ij,jk,k->i"),
        Sample(Z, Z, subscripts="ij,ij->"),
    ],
    "einsum_adjoint": [
        Sample(real(2, 4), X, WIDE, subscripts="ij,jk->ik", position=0),
        Sample(real(2, 4), X, WIDE, subscripts="ij,jk->ik", position=1),
        Sample(V, real(3, 3), subscripts="ii->i", position=0),
        Sample(complexes(2, 2), Z, Z, subscripts="ij,kj->ik", position=1),
    ],
}
