"""``tensordot``: sums of products over pairs of axes, and its adjoints.

Each of the three ops is differentiated by the other two, as for ``matmul``.
"""

from __future__ import annotations

import itertools
from string import ascii_letters
from typing import Any

import numpy as np

from ....core.extend import NONDIFF, F, Op, Shared, Size, Tensor, among, rank_of, sizes_differ
from ..common.axes import as_axis, reduced_axes
from ..common.gradients import as_like
from ..common.op_builders import named, op
from ..common.sizes import fixed
from ..shapes.joining import common_dtype
from .einsum import unused_label
from .matmul import adjoint_spec

Pairs = tuple[tuple[int, ...], tuple[int, ...]]


def _contracted(x: Any, y: Any, axes: Pairs) -> Pairs:
    """Return the axes that a tensordot of these shapes sums over, counted from 0."""
    result = tuple(
        reduced_axes(given, len(shape), "tensordot")
        for given, shape in zip(axes, (x, y), strict=True)
    )
    if len(result[0]) != len(result[1]):
        raise ValueError(f"tensordot: axes {axes} do not come in pairs")
    for i, j in zip(*result, strict=True):
        if sizes_differ(x[i], y[j]):
            raise ValueError(f"tensordot: shapes {x} and {y} differ on axes {i} and {j}")
    return result  # type: ignore[return-value]


def _rest(rank: int, taken: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(i for i in range(rank) if i not in taken)


def _tensordot_kernel(xp: Any, x: Any, y: Any, *, axes: Pairs) -> Any:
    return xp.tensordot(x, y, axes=_contracted(x.shape, y.shape, axes))


def _tensordot_shape(x: Any, y: Any, axes: Pairs) -> Any:
    if x is None or y is None:
        return None
    ax, ay = _contracted(x, y, axes)
    return (*(x[i] for i in _rest(len(x), ax)), *(y[j] for j in _rest(len(y), ay)))


def _tensordot_to_x(xp: Any, g: Any, y: Any, like: Any, *, axes: Pairs) -> Any:
    ax, ay = _contracted(like.shape, y.shape, axes)
    free_x, free_y = _rest(like.ndim, ax), _rest(y.ndim, ay)
    gx = xp.tensordot(g, y, axes=(tuple(range(len(free_x), g.ndim)), free_y))
    # the axes of gx are those of x that stayed, then those joined, in the order that y has them
    order = (*free_x, *(i for _, i in sorted(zip(ay, ax, strict=True))))
    return xp.permute_dims(gx, tuple(order.index(i) for i in range(like.ndim)))


def _tensordot_to_y(xp: Any, g: Any, x: Any, like: Any, *, axes: Pairs) -> Any:
    ax, ay = _contracted(x.shape, like.shape, axes)
    free_x, free_y = _rest(x.ndim, ax), _rest(like.ndim, ay)
    gy = xp.tensordot(x, g, axes=(free_x, tuple(range(len(free_x)))))
    order = (*(j for _, j in sorted(zip(ax, ay, strict=True))), *free_y)
    return xp.permute_dims(gy, tuple(order.index(j) for j in range(like.ndim)))


def _tensordot_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``tensordot`` and of its adjoints."""
    if op.name == "tensordot":
        ranks = [rank_of(x, op) - b for x, b in zip(xs, batched, strict=True)]
        axes = [
            reduced_axes(n, rank, "tensordot")
            for n, rank in zip(params["axes"], ranks, strict=True)
        ]
        if not batched[1]:
            return op.raw(*xs, axes=(tuple(n + 1 for n in axes[0]), axes[1]))
        if not batched[0]:
            product = op.raw(*xs, axes=(axes[0], tuple(n + 1 for n in axes[1])))
            return F.moveaxis(product, source=(ranks[0] - len(axes[0]),), destination=(0,))
        terms, output = _labels(ranks[0], ranks[1], axes)
        return _labelled_product(terms, output, xs, batched)
    g, other, like = xs
    bg, bo, bl = batched
    first = op.name.endswith("_x")
    ranks = [rank_of(like, op) - bl, rank_of(other, op) - bo]
    if not first:
        ranks.reverse()
    axes = [
        reduced_axes(n, rank, "tensordot") for n, rank in zip(params["axes"], ranks, strict=True)
    ]
    (x, y), output = _labels(ranks[0], ranks[1], axes)
    return _labelled_product([output, y if first else x], x if first else y, [g, other], [bg, bo])


def _labels(rank_x: int, rank_y: int, axes: list[tuple[int, ...]]) -> tuple[list[str], str]:
    """Return the labels of a tensordot written as an einsum."""
    letters = (ascii_letters[i] for i in itertools.count())
    x = [next(letters) for _ in range(rank_x)]
    joined = dict(zip(axes[1], (x[i] for i in axes[0]), strict=True))
    y = [joined.get(i) or next(letters) for i in range(rank_y)]
    free = [a for i, a in enumerate(x) if i not in axes[0]]
    free += [a for i, a in enumerate(y) if i not in axes[1]]
    return ["".join(x), "".join(y)], "".join(free)


def _labelled_product(terms: list[str], output: str, xs: list[Any], batched: list[bool]) -> Any:
    if not any(batched):  # only the array whose shape is asked for has the hidden axis
        return Shared(F.einsum(*xs, subscripts=f"{','.join(terms)}->{output}"))
    new = unused_label("".join(terms) + output)
    terms = [new + term if b else term for term, b in zip(terms, batched, strict=True)]
    return F.einsum(*xs, subscripts=f"{','.join(terms)}->{new}{output}")


_tensordot = op(
    "tensordot",
    _tensordot_kernel,
    gradients={
        "x": lambda g, y, x_like, axes: as_like(
            F.tensordot_adjoint_x(g, y, x_like, axes=axes), x_like
        ),
        "y": lambda g, x, y_like, axes: as_like(
            F.tensordot_adjoint_y(g, x, y_like, axes=axes), y_like
        ),
    },
    infer=lambda x, y, axes: (_tensordot_shape(x.shape, y.shape, axes), common_dtype((x, y))),
    holomorphic=True,
    batch=_tensordot_rule,
    jvp="multilinear",
    doc="Sum the products of two arrays over pairs of axes.",
)
op(
    "tensordot_adjoint_x",
    _tensordot_to_x,
    gradients={
        "g": lambda g, y, g_like, axes: as_like(F.tensordot(g, y, axes=axes), g_like),
        "y": lambda d, g, y_like, axes: as_like(
            F.tensordot_adjoint_y(g, d, y_like, axes=axes), y_like
        ),
        "like": NONDIFF,
    },
    infer=adjoint_spec,
    holomorphic=True,
    batch=_tensordot_rule,
    jvp="multilinear",
    doc="Send a gradient of ``tensordot`` back to its first operand.",
)
op(
    "tensordot_adjoint_y",
    _tensordot_to_y,
    gradients={
        "g": lambda g, x, g_like, axes: as_like(F.tensordot(x, g, axes=axes), g_like),
        "x": lambda d, g, x_like, axes: as_like(
            F.tensordot_adjoint_x(g, d, x_like, axes=axes), x_like
        ),
        "like": NONDIFF,
    },
    infer=adjoint_spec,
    holomorphic=True,
    batch=_tensordot_rule,
    jvp="multilinear",
    doc="Send a gradient of ``tensordot`` back to its second operand.",
)


@named
def tensordot(x: Any, y: Any, axes: Any = 2) -> Tensor:
    """Return the sum of products of ``x`` and ``y`` over pairs of axes.

    Parameters
    ----------
    x, y
        Tensors; they do not broadcast. Dtypes promote.
    axes
        ``n`` (2 by default): the last ``n`` axes of ``x`` with the first ``n`` of ``y``. Or a pair:
        axes of ``x``, and the axes of ``y`` to pair them with.

    Returns
    -------
    Tensor
        A tensor of the other axes of ``x``, followed by those of ``y``.

    Raises
    ------
    ValueError
        If sizes on paired axes differ, or axes do not come in pairs.
    numpy.exceptions.AxisError
        If an axis is out of bounds.

    Examples
    --------
    >>> gt.tensordot(gt.ones((2, 3, 4)), gt.ones((3, 4, 5))).shape
    (2, 5)
    >>> gt.tensordot(gt.ones((2, 3)), gt.ones((2, 4)), axes=(0, 0)).shape
    (3, 4)
    """
    if isinstance(axes, (int, np.integer, Size)):
        count = fixed(axes, "tensordot", "the number of axes")
        pair: Any = (tuple(range(-count, 0)), tuple(range(count)))
    else:
        pair = tuple(as_axis(a, "tensordot") for a in axes)
        pair = tuple(a if isinstance(a, tuple) else (a,) for a in pair)
        if len(pair) != 2:
            raise ValueError(f"tensordot: axes is a number or a pair, got {axes!r}")
    return _tensordot(*among((x, y)), axes=pair)
