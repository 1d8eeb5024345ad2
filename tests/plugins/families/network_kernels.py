"""Kernels that networks run: reshaping, picking, products, activations, losses."""

from __future__ import annotations

import numpy as np

from .family import Family

RNG = np.random.default_rng(0)
M = RNG.standard_normal((3, 4))
S = RNG.standard_normal((3, 3)) + 3 * np.eye(3)
V = RNG.standard_normal(4)
I = np.array([0, 2, 2])  # noqa: E741 - indices
# where slopes of silu and gelu are nearly 0, and not
NEAR_ROOTS = np.array([-1.2785, -1.2, -0.7518, -0.7, 0.5])
JOIN = {"axes": ((1,), (1,))}
ROWS = {"index": (("slice", 1, None, None),)}
PICKS = {"index": (("array", 0), ("array", 1))}
MASK = {"index": (("array", 0),)}
SUBSCRIPTS = {"subscripts": "ij,ik->jk"}

KERNELS = [
    ("reshape", (M,), {"shape": (4, 3)}),
    ("broadcast_to", (M,), {"shape": (2, 3, 4)}),
    ("expand_dims", (M,), {"axis": (0, 2)}),
    ("expand_dims", (M,), {"axis": -1}),
    ("squeeze", (M[None],), {"axis": 0}),
    ("transpose", (M,), {"axes": None}),
    ("transpose", (M[None],), {"axes": (2, 0, 1)}),
    ("moveaxis", (M,), {"source": (0,), "destination": (1,)}),
    ("swapaxes", (M,), {"axis1": 0, "axis2": 1}),
    ("flip", (M,), {"axis": 0}),
    ("roll", (M,), {"shift": 1, "axis": None}),
    ("tril", (M,), {}),
    ("triu", (M,), {"k": 1}),
    ("tile", (M,), {"reps": (2, 1)}),
    ("untile_like", (np.tile(M, (2, 1)), M), {"reps": (2, 1)}),
    ("repeat", (M,), {"repeats": 2, "axis": 0}),
    ("unrepeat_like", (np.repeat(M, 2, 0), M), {"repeats": 2, "axis": 0}),
    ("pad", (M,), {"pad_width": ((1, 2),), "value": 3}),
    ("unpad", (M,), {"pad_width": ((1, 0), (0, 2))}),
    ("concatenate", (M, M), {"axis": 0}),
    ("split_like", (M, M[:1], M[1:]), {"axis": 0}),
    ("stack", (M, M), {"axis": 1}),
    ("unstack", (M,), {"axis": 0, "num": 3}),
    ("split", (M,), {"sections": 2, "axis": 1}),
    ("split", (M,), {"sections": (1, 2), "axis": 0}),
    ("getitem", (M,), ROWS),
    ("index_add_like", (M[1:], M), ROWS),
    ("index_add_all_like", (M, M[0], M[1:]), {"indices": ((0,), ROWS["index"])}),
    ("getitem", (M, I, I), PICKS),
    ("index_add_like", (V[:3], M, I, I), PICKS),
    ("getitem", (M, M > 0), MASK),
    ("index_add_like", (M[M > 0], M, M > 0), MASK),
    ("take", (M, I), {"axis": 0}),
    ("take", (M, I[None]), {"axis": None}),
    ("take_adjoint", (M[I], I, M), {"axis": 0}),
    ("take_along_axis", (M, I[:, None]), {"axis": 1}),
    ("take_along_axis_adjoint", (M[:, :1], I[:, None], M), {"axis": 1}),
    ("argsort", (M,), {"axis": 0}),
    ("diagonal", (M,), {"offset": 1}),
    ("diagonal_adjoint", (V[:3], M), {"offset": 1}),
    ("diag", (V,), {"k": -1}),
    ("matmul", (M, M.T), {}),
    ("matmul_adjoint_x", (S, M.T, M), {}),
    ("matmul_adjoint_x", (V, M, V[:3]), {}),
    ("matmul_adjoint_y", (S, M, M.T), {}),
    ("matmul_adjoint_y", (V[:3], M, V), {}),
    ("tensordot", (M, M), JOIN),
    ("tensordot_adjoint_x", (S, M, M), JOIN),
    ("tensordot_adjoint_y", (S, M, M), JOIN),
    ("einsum", (M, S), SUBSCRIPTS),
    ("einsum", (S,), {"subscripts": "ii->i"}),
    ("einsum_adjoint", (M.T, M, S), {**SUBSCRIPTS, "position": 0}),
    ("norm", (M,), {"axis": 1}),
    ("norm", (M + 1j,), {}),
    ("solve", (S, M), {}),
    ("inv", (S,), {}),
    ("det", (S,), {}),
    ("cofactor", (S,), {}),
    ("unique", (I,), {}),
    ("isin", (M, V), {}),
    ("cofactor", (S + 1j,), {}),
    ("slogdet", (S,), {}),
    ("cholesky", (S @ S.T,), {}),
    *((name, (M,), {}) for name in ("relu", "relu6", "sigmoid", "softplus", "silu", "elu")),
    *(("sigmoid_slope", (x, 1 / (1 + np.exp(-x))), {}) for x in (M, 0.01 * M)),
    *(("silu_slope", (x,), {}) for x in (M, 0.01 * M, 1000.0 * M, NEAR_ROOTS)),
    *(("hypot_slope", (x, M, np.hypot(x, M)), {}) for x in (M, M + 1.0, 0.0 * M)),
    ("leaky_relu", (M,), {"alpha": 0.1}),
    ("softmax", (M,), {"axis": 0}),
    ("softmax", (M[:, :0],), {"axis": 1}),
    ("log_softmax", (M,), {"axis": -1}),
    ("sparse_softmax_cross_entropy", (M, I), {}),
    ("softmax_less_labels", (M, I), {}),
    ("softmax_cross_entropy", (M, M), {"axis": -1}),
    ("softmax_cross_entropy", (M, M), {"axis": 0}),
    ("softmax_less_shares", (M, M), {"axis": -1}),
    ("softmax_less_shares", (M, M), {"axis": 0}),
    ("one_hot", (I,), {"depth": 3, "dtype": "float32"}),
    ("lstm_gates", (M[:, :4], M[:, :1]), {}),
    ("lstm_gates_gradient", (*[M[:, :1]] * 2, M[:, :4], *[M[:, :1]] * 2), {}),
    ("batch_norm_training", (M, V, V), {"axis": -1}),
    ("batch_norm_training", (M, V[:3], V[:3]), {"axis": 0}),
    ("batch_norm_gradient", (M, V, V, M, V, V, V * V), {"axis": -1}),
    ("batch_norm_gradient", (M, *[V[:3]] * 2, M, *[V[:3]] * 2, V[:3] ** 2), {"axis": 0}),
]

FAMILY = Family(kernels=KERNELS)
