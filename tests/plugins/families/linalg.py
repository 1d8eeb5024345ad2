"""Products, norms, solvers, determinants."""

from __future__ import annotations

import numpy as np

import gradtape as gt

from .family import Family

RNG = np.random.default_rng(0)


def R(*shape):
    return RNG.standard_normal(shape)


def C(*shape):
    return R(*shape) + 1j * R(*shape)


def near_identity(*batch, n=3):
    return R(*batch, n, n) * 0.5 + 3 * np.eye(n)


MATMUL = [
    ((3, 4), (4, 2)),
    ((4,), (4,)),
    ((4,), (4, 2)),
    ((3, 4), (4,)),
    ((5, 3, 4), (4, 2)),
    ((3, 4), (5, 4, 2)),
    ((5, 3, 4), (4,)),
    ((4,), (5, 4, 2)),
    ((2, 1, 3, 4), (5, 4, 2)),
    ((2, 3, 4), (2, 4, 2)),
    ((0, 4), (4, 2)),
    ((3, 0), (0, 2)),
    ((0, 3, 4), (4, 2)),
    ((5, 0, 4), (4, 2)),
]
TENSORDOT = [
    ((2, 3, 4), (3, 4, 5), 2),
    ((2, 3), (4, 5), 0),
    ((2, 3, 4), (4, 5, 3), ((1, 2), (2, 0))),
    ((2, 3, 4), (5, 4, 2), ((0, -1), (-1, 1))),
    ((3,), (3,), 1),
    ((2, 3), (3, 2), (0, 1)),
]
EINSUM = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    (" i j , j k -> k i ", (2, 3), (3, 4)),
    ("ba", (2, 3)),
    ("ii->i", (3, 3)),
    ("ii", (3, 3)),
    ("iij->j", (3, 3, 2)),
    ("iij,i->ji", (3, 3, 2), (3,)),
    ("iii->i", (2, 2, 2)),
    ("...ij,...jk->...ik", (2, 1, 2, 3), (4, 3, 2)),
    ("...i->...", (2, 3, 4)),
    ("...,i->...i", (2,), (3,)),
    ("...ij->...ji", (2, 3)),
    ("i...,i...", (2, 3), (2, 3)),
    ("i,j->ij", (2,), (3,)),
    ("ij->", (2, 3)),
    (",i->i", (), (3,)),
    ("i,ij,j", (2,), (2, 3), (3,)),
    ("bij,bjk,kl->bil", (2, 2, 3), (2, 3, 2), (2, 2)),
    ("ij,ij->ij", (2, 3), (1, 3)),
    ("ij,jk->ik", (2, 3), (1, 4)),
    ("ij,kl->ik", (2, 3), (2, 3)),
    ("ij,jk->ik", (0, 3), (3, 4)),
]

SAMPLES = {
    **{f"matmul {a} {b}": (gt.matmul, np.matmul, [R(*a), R(*b)]) for a, b in MATMUL},
    **{
        f"tensordot {a} {b} {axes}": (
            lambda x, y, axes=axes: gt.tensordot(x, y, axes),
            lambda x, y, axes=axes: np.tensordot(x, y, axes),
            [R(*a), R(*b)],
        )
        for a, b, axes in TENSORDOT
    },
    **{
        f"einsum {subscripts} {shapes}": (
            lambda *xs, s=subscripts: gt.einsum(s, *xs),
            lambda *xs, s=subscripts: np.einsum(s, *xs),
            [R(*shape) for shape in shapes],
        )
        for subscripts, *shapes in EINSUM
    },
    "dot of numbers": (gt.dot, np.dot, [R(), R(3)]),
    "dot of vectors": (gt.dot, np.dot, [R(3), R(3)]),
    "dot beyond": (gt.dot, np.dot, [R(2, 3), R(4, 3, 2)]),
    "outer": (gt.outer, np.outer, [R(3), R(2, 2)]),
    "trace": (gt.linalg.trace, np.trace, [R(3, 4)]),
    "trace offset": (
        lambda x: gt.trace(x, 1, 0, 2),
        lambda x: np.trace(x, 1, 0, 2),
        [R(3, 2, 4)],
    ),
    "solve": (gt.linalg.solve, np.linalg.solve, [near_identity(), R(3, 2)]),
    "solve a vector": (gt.linalg.solve, np.linalg.solve, [near_identity(2), R(3)]),
    "solve broadcasting": (gt.linalg.solve, np.linalg.solve, [near_identity(), R(2, 3, 2)]),
    "inv": (gt.linalg.inv, np.linalg.inv, [near_identity(2)]),
    "det": (gt.linalg.det, np.linalg.det, [near_identity(2)]),
    "det 1x1": (gt.linalg.det, np.linalg.det, [R(1, 1)]),
    "slogdet": (
        lambda x: gt.linalg.slogdet(x)[1],
        lambda x: np.linalg.slogdet(x)[1],
        [-near_identity(2)],
    ),
    "norm": (gt.linalg.norm, np.linalg.norm, [R(3, 4)]),
    "norm axis": (
        lambda x: gt.linalg.norm(x, axis=-1, keepdims=True),
        lambda x: np.linalg.norm(x, axis=-1, keepdims=True),
        [R(3, 4)],
    ),
    "norm pair": (
        lambda x: gt.linalg.norm(x, axis=(0, 2)),
        lambda x: np.linalg.norm(x, axis=(0, 2)),
        [R(3, 2, 4)],
    ),
    **{
        f"norm {ord} of vectors": (
            lambda x, ord=ord: gt.linalg.norm(x, ord, axis=1),
            lambda x, ord=ord: np.linalg.norm(x, ord, axis=1),
            [R(3, 4)],
        )
        for ord in (1, 2, 3, 2.5, -1, -2, np.inf, -np.inf)
    },
    **{
        f"norm {ord} of matrices": (
            lambda x, ord=ord: gt.linalg.norm(x, ord),
            lambda x, ord=ord: np.linalg.norm(x, ord),
            [R(3, 4)],
        )
        for ord in (1, -1, 2, -2, np.inf, -np.inf, "fro", "nuc")
    },
    "norm 1 of matrices, kept": (
        lambda x: gt.linalg.norm(x, 1, axis=(-1, 0), keepdims=True),
        lambda x: np.linalg.norm(x, 1, axis=(-1, 0), keepdims=True),
        [R(3, 2, 4)],
    ),
}

ERRORS = [
    (lambda x, a: gt.matmul(x, x), ValueError, r"matmul.*\(3, 4\).*4 is not 3"),
    (lambda x, a: gt.matmul(x, gt.sum(x)), ValueError, r"matmul.*\(\).*multiply"),
    (lambda x, a: gt.matmul(gt.stack([a, a]), gt.stack([a, a, a])), ValueError, "matmul"),
    (lambda x, a: gt.tensordot(x, x, 1), ValueError, r"tensordot.*\(3, 4\).*axes 1 and 0"),
    (lambda x, a: gt.tensordot(x, x, ((0, 1), (0,))), ValueError, "tensordot.*pairs"),
    (lambda x, a: gt.tensordot(x, x, (0, 0, 0)), ValueError, "tensordot.*pair"),
    (lambda x, a: gt.tensordot(x, x, (2, 0)), ValueError, "tensordot.*axis 2"),
    (lambda x, a: gt.einsum("ij,jk", x), ValueError, "einsum.*2 operands, got 1"),
    (lambda x, a: gt.einsum("ijk", x), ValueError, "einsum.*2 axes"),
    (lambda x, a: gt.einsum("i", x), ValueError, "einsum.*2 axes"),
    (lambda x, a: gt.einsum("i1", x), ValueError, "einsum.*letters"),
    (lambda x, a: gt.einsum("ij->k", x), ValueError, "einsum.*output"),
    (lambda x, a: gt.einsum("ij->ii", x), ValueError, "einsum.*output"),
    (lambda x, a: gt.einsum("...j->j", x), ValueError, "einsum.*'...'"),
    (lambda x, a: gt.einsum("ij,ij", x, a), ValueError, "einsum"),
    (lambda x, a: gt.linalg.solve(a, x[:2]), ValueError, "solve"),
    (lambda x, a: gt.linalg.solve(x, x), ValueError, "solve"),
    (lambda x, a: gt.linalg.inv(x), ValueError, "inv"),
    (lambda x, a: gt.linalg.det(x), ValueError, "det"),
    (lambda x, a: gt.linalg.cholesky(x), ValueError, "cholesky"),
    (lambda x, a: gt.linalg.norm(x, 3), ValueError, "norm.*ord=3 is not a norm of matrices"),
    (lambda x, a: gt.linalg.norm(x, "nuc", axis=0), ValueError, "norm.*nuc"),
    (lambda x, a: gt.linalg.norm(gt.stack([x, x]), 1), ValueError, "norm.*ord=1.*not a norm"),
    (lambda x, a: gt.linalg.norm(x, axis=2), ValueError, "norm.*axis 2"),
    (lambda x, a: gt.diagonal(x[0]), ValueError, "axis 1"),
]

FAMILY = Family(
    samples=SAMPLES,
    errors=ERRORS,
    given=[R(3, 4), near_identity()],
    values={"rtol": 1e-12, "atol": 1e-14},
    runs={"rtol": 1e-12, "atol": 0.0},
    precisions=("float32",),
)
