"""Batching rules of products and of solving: which operand is batched decides what is quick."""

from __future__ import annotations

from itertools import count
from string import ascii_letters
from typing import Any

from ....core.extend import F, Op, Shared, as_batched, in_words, ops, rank_of
from ..common.axes import reduced_axes
from ..common.batching import aligned, together

__all__ = ["einsum_rule", "matmul_rule", "solve_rule", "tensordot_rule", "to_x_rule", "to_y_rule"]


ONLY_G = [True, False, False]


def matmul_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``matmul``."""
    (x, y), (bx, by) = xs, batched
    rx, ry = rank_of(x, op) - bx, rank_of(y, op) - by
    if 0 in (rx, ry):
        raise ValueError("matmul: an operand has no axes; use multiply")
    if not by and ry <= 2:
        return op.raw(x, y)
    if not bx and rx == 2 and ry == 1:
        return op.raw(y, F.swapaxes(x, axis1=0, axis2=1))
    # vectors become matrices, then all axes before the matrices line up
    row, column = rx == 1, ry == 1
    if row:
        x, rx = F.expand_dims(x, axis=-2), 2
    if column:
        y, ry = F.expand_dims(y, axis=-1), 2
    most = max(rx, ry)
    x = aligned(x, most, op) if bx else x
    y = aligned(y, most, op) if by else y
    result = op.raw(x, y)
    if column:
        result = F.squeeze(result, axis=-1)
    return F.squeeze(result, axis=-1 if column else -2) if row else result


def to_x_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``matmul_adjoint_x``."""
    g, y, like = xs
    if batched == ONLY_G and rank_of(y, op) == 2 and rank_of(like, op) <= 2:
        return matmul_rule(ops["matmul"], [g, _turned(y)], [True, False], {})
    return in_words(_to_x, known(xs, op), batched)


def to_y_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``matmul_adjoint_y``."""
    g, x, like = xs
    if batched == ONLY_G and rank_of(x, op) == 2 == rank_of(like, op):
        return matmul_rule(ops["matmul"], [_turned(x), g], [False, True], {})
    return in_words(_to_y, known(xs, op), batched)


def known(xs: list[Any], op: Op) -> list[Any]:
    """Return arrays whose ranks are known; raise if one's is not."""
    for x in xs:
        rank_of(x, op)
    return xs


def _to_x(g: Any, y: Any, like: Any) -> Any:
    """Send a gradient of ``matmul`` back to its first operand: the op in terms of others."""
    if len(y.shape) == 1:
        return F.unbroadcast_like(F.expand_dims(g, axis=-1) * y, like)
    if len(like.shape) == 1:
        if len(y.shape) == 2:
            return F.matmul(g, _turned(y))
        product = F.matmul(y, F.expand_dims(g, axis=-1))
        return F.unbroadcast_like(F.squeeze(product, axis=-1), like)
    return F.unbroadcast_like(F.matmul(g, _turned(y)), like)


def _to_y(g: Any, x: Any, like: Any) -> Any:
    """Send a gradient of ``matmul`` back to its second operand: the op in terms of others."""
    rank_x, rank = len(x.shape), len(like.shape)
    if rank_x == 1:
        if rank == 1:
            return g * x
        product = F.expand_dims(g, axis=-2) * F.expand_dims(x, axis=-1)
        return F.unbroadcast_like(product, like)
    if rank <= 2 < rank_x or rank == 1:
        over = tuple(range(rank_x - 1))
        return F.tensordot(x, g, axes=(over, over))
    return F.unbroadcast_like(F.matmul(_turned(x), g), like)


def _turned(x: Any) -> Any:
    if len(x.shape) == 2:
        return F.transpose(x, axes=None)
    return F.swapaxes(x, axis1=-1, axis2=-2)


def _label(used: str) -> str:
    return next(letter for letter in ascii_letters if letter not in used)


def einsum_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``einsum`` and of its adjoint: one label more."""
    left, output = params["subscripts"].split("->")
    terms = left.split(",")
    new = _label(params["subscripts"])
    if op.name == "einsum":
        terms = [new + term if b else term for term, b in zip(terms, batched, strict=True)]
        return op.raw(*xs, subscripts=f"{','.join(terms)}->{new}{output}")
    position = params["position"]
    xs, batched = list(xs), list(batched)
    if not batched[position + 1]:  # the result has its shape
        like = xs[batched.index(True)]
        xs[position + 1], batched[position + 1] = as_batched(xs[position + 1], like), True
    terms = [new + term if b else term for term, b in zip(terms, batched[1:], strict=True)]
    output = new + output if batched[0] else output
    return op.raw(*xs, subscripts=f"{','.join(terms)}->{output}", position=position)


def tensordot_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
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
        return _product(terms, output, xs, batched)
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
    return _product([output, y if first else x], x if first else y, [g, other], [bg, bo])


def _labels(rank_x: int, rank_y: int, axes: list[tuple[int, ...]]) -> tuple[list[str], str]:
    """Return what a tensordot is in einsum's terms."""
    letters = (ascii_letters[i] for i in count())
    x = [next(letters) for _ in range(rank_x)]
    joined = dict(zip(axes[1], (x[i] for i in axes[0]), strict=True))
    y = [joined.get(i) or next(letters) for i in range(rank_y)]
    free = [a for i, a in enumerate(x) if i not in axes[0]]
    free += [a for i, a in enumerate(y) if i not in axes[1]]
    return ["".join(x), "".join(y)], "".join(free)


def _product(terms: list[str], output: str, xs: list[Any], batched: list[bool]) -> Any:
    if not any(batched):  # only the array whose shape is asked for has the hidden axis
        return Shared(F.einsum(*xs, subscripts=f"{','.join(terms)}->{output}"))
    new = _label("".join(terms) + output)
    terms = [new + term if b else term for term, b in zip(terms, batched, strict=True)]
    return F.einsum(*xs, subscripts=f"{','.join(terms)}->{new}{output}")


def solve_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``solve`` and ``solve_triangular``."""
    (a, b), (ba, bb) = xs, batched
    if rank_of(b, op) - bb > 1:
        most = max(rank_of(a, op) - ba, rank_of(b, op) - bb)
        a, b = (aligned(x, most, op) if flag else x for x, flag in ((a, ba), (b, bb)))
        return op.raw(a, b, **params)
    if not ba and rank_of(a, op) == 2:  # one factorisation for all right-hand sides
        columns = op.raw(a, F.swapaxes(b, axis1=0, axis2=1), **params)
        return F.swapaxes(columns, axis1=0, axis2=1)
    a, b = together([a, b], [ba, bb])
    b = aligned(F.expand_dims(b, axis=-1), rank_of(a, op) - 1, op)
    return F.squeeze(op.raw(a, b, **params), axis=-1)
