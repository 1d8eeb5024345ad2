"""``einsum`` and ``tensordot``: sums of products, and their adjoints.

The result is linear in each operand. The op ``einsum_adjoint`` sends the result's gradient back to
an operand. It is a sum of products too, so the two differentiate each other. For ``tensordot``, as
for ``matmul``, each of three ops is differentiated by the other two.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache
from math import prod
from string import ascii_letters
from typing import Any

import numpy as np

from ....core.extend import (
    NONDIFF,
    F,
    Op,
    Shared,
    Size,
    Tensor,
    TensorSpec,
    as_batched,
    as_operands,
    broadcast_shapes,
    numpy_dtype,
    ops,
    rank_of,
    sizes_differ,
)
from ..common.axes import as_axis, reduced_axes
from ..common.dynamic_shapes import fixed
from ..common.kernels import as_like, cast_to, in_float32
from ..common.op_builders import named, op
from ..shapes.joining import common_dtype
from .matmul import adjoint_spec
from .matrix_forms import matrix_form, multiplied


@lru_cache(maxsize=1024)
def explicit(subscripts: str, count: int) -> str:
    """Return subscripts without spaces and with an output; check them for ``count`` operands."""
    text = subscripts.replace(" ", "")
    left, arrow, output = text.partition("->")
    terms = left.split(",")
    if len(terms) != count:
        raise ValueError(f"einsum: {subscripts!r} is for {len(terms)} operands, got {count}")
    for term in (*terms, output):
        labels = term.replace("...", "", 1)
        if labels and not (labels.isascii() and labels.isalpha()):
            raise ValueError(
                f"einsum: {subscripts!r}: {term!r} is not made of letters and at most one '...'"
            )
    labels = left.replace("...", "").replace(",", "")
    if not arrow:
        output = "..." if "..." in left else ""
        output += "".join(sorted(label for label in set(labels) if labels.count(label) == 1))
    kept = output.replace("...", "")
    if len(set(kept)) != len(kept) or not set(kept) <= set(labels):
        raise ValueError(
            f"einsum: {subscripts!r}: the output's labels must be different ones of the operands"
        )
    if "..." in left and "..." not in output:
        raise ValueError(f"einsum: {subscripts!r}: the output needs the operands' '...'")
    return f"{left}->{output}"


@lru_cache(maxsize=1024)
def labelled(subscripts: str, ranks: tuple[int, ...]) -> tuple[list[str], str]:
    """Return a label for each axis of each operand and of the output: ``...`` is expanded."""
    left, output = subscripts.split("->")
    terms = left.split(",")
    free = [letter for letter in ascii_letters if letter not in left]
    extra = []
    for term, rank in zip(terms, ranks, strict=True):
        named = len(term.replace("...", ""))
        if rank < named or (rank > named and "..." not in term):
            raise ValueError(
                f"einsum: {subscripts!r}: {term!r} does not fit an array of {rank} axes"
            )
        extra.append(rank - named)
    width = max(extra, default=0)
    shared = "".join(free[:width])
    spelt = [term.replace("...", shared[width - n :]) for term, n in zip(terms, extra, strict=True)]
    return spelt, output.replace("...", shared)


def _contract(xp: Any, terms: Sequence[str], output: str, arrays: Sequence[Any]) -> Any:
    """Sum the products of arrays with labelled axes."""
    for term, x in zip(terms, arrays, strict=True):
        # NumPy reads beyond an array whose axes of one label have the sizes 0 and 1
        empty = any(type(n) is int and n == 0 for n in x.shape)
        if empty and len(set(zip(term, x.shape, strict=True))) > len(set(term)):
            raise ValueError(f"einsum: {term!r} does not fit an array of shape {x.shape}")
    form = matrix_form(terms, output, arrays)
    if form is not None:
        return multiplied(xp, form, *arrays)
    function = getattr(xp, "einsum", None)
    if function is not None:
        sizes = [prod(x.shape) for x in arrays]  # open ones in an export: large, for all one knows
        large = len(arrays) > 2 or any(type(n) is not int or n > 4096 for n in sizes)
        return function(f"{','.join(terms)}->{output}", *arrays, optimize=large)
    # The array API has no einsum: line all axes up, multiply, and sum.
    labels = output + "".join(sorted(set("".join(terms)) - set(output)))
    product: Any = 1
    for term, array in zip(terms, arrays, strict=True):
        product = product * _aligned(xp, term, array, labels)
    summed = tuple(range(len(output), len(labels)))
    return xp.sum(product, axis=summed) if summed else product


def _aligned(xp: Any, term: str, x: Any, labels: str) -> Any:
    """Return ``x`` with one axis per label, of size 1 where it does not have the label."""
    for label in dict.fromkeys(term):
        while term.count(label) > 1:
            i = term.index(label)
            j = term.index(label, i + 1)
            rest = [k for k in range(x.ndim) if k not in (i, j)]
            x = xp.linalg.diagonal(xp.permute_dims(x, (*rest, i, j)))
            term = "".join(term[k] for k in rest) + label
    order = sorted(range(x.ndim), key=lambda k: labels.index(term[k]))
    sizes = dict(zip(term, x.shape, strict=True))
    return xp.reshape(xp.permute_dims(x, tuple(order)), tuple(sizes.get(a, 1) for a in labels))


@in_float32
def _kernel(xp: Any, *operands: Any, subscripts: str) -> Any:
    terms, output = labelled(subscripts, tuple(x.ndim for x in operands))
    return _contract(xp, terms, output, operands)


def _adjoint(xp: Any, g: Any, *operands: Any, subscripts: str, position: int) -> Any:
    given, dtype = list(operands), numpy_dtype(g.dtype)
    if dtype == np.float16:  # only the shape of this operand matters
        given[position] = cast_to(xp, given[position], dtype)
    return _adjoint_in_float32(xp, g, *given, subscripts=subscripts, position=position)


@in_float32
def _adjoint_in_float32(xp: Any, g: Any, *operands: Any, subscripts: str, position: int) -> Any:
    terms, output = labelled(subscripts, tuple(x.ndim for x in operands))
    term, shape = terms[position], operands[position].shape
    others = [i for i in range(len(operands)) if i != position]
    given = [output, *(terms[i] for i in others)]
    present = set("".join(given))
    unique = "".join(dict.fromkeys(term))
    kept = "".join(label for label in unique if label in present)
    result = _contract(xp, given, kept, [g, *(operands[i] for i in others)])
    # a label of this operand alone was summed: its gradient is the same all along
    found = dict(zip(kept, result.shape, strict=True))
    result = xp.reshape(result, tuple(found.get(label, 1) for label in unique))
    sizes = dict(zip(term, shape, strict=True))
    stretched = tuple(
        i for i, label in enumerate(unique) if sizes[label] == 1 and result.shape[i] != 1
    )
    if stretched:
        result = xp.sum(result, axis=stretched, keepdims=True)
    result = xp.broadcast_to(result, tuple(sizes[label] for label in unique))
    return result if unique == term else _on_diagonal(xp, result, unique, term, shape)


def _on_diagonal(xp: Any, x: Any, unique: str, term: str, shape: tuple[int, ...]) -> Any:
    """Put ``x`` where axes of the same label have the same index, in zeros."""
    first = [term.index(label) for label in unique]
    x = xp.permute_dims(x, tuple(sorted(range(len(unique)), key=lambda i: first[i])))
    x = xp.reshape(x, tuple(n if i in first else 1 for i, n in enumerate(shape)))
    for i, label in enumerate(term):
        if i not in first:
            mine, other = (
                xp.reshape(
                    xp.arange(shape[i]), tuple(-1 if k == j else 1 for k in range(len(shape)))
                )
                for j in (i, term.index(label))
            )
            x = xp.where(mine == other, x, xp.zeros((), dtype=x.dtype))
    return x


def _conj(x: Any) -> Any:
    return F.conj(x) if x.dtype.kind == "c" else x


def _vjp(gs: Any, inputs: Any, outputs: Any, needed: Any, *, subscripts: str) -> list[Any]:
    operands = [_conj(x) for x in inputs]
    return [
        as_like(F.einsum_adjoint(gs[0], *operands, subscripts=subscripts, position=i), x)
        if needed[i]
        else None
        for i, x in enumerate(inputs)
    ]


def _adjoint_vjp(
    gs: Any, inputs: Any, outputs: Any, needed: Any, *, subscripts: str, position: int
) -> list[Any]:
    g, *operands = [_conj(x) for x in inputs]
    operands[position] = gs[0]
    grads: list[Any] = [as_like(F.einsum(*operands, subscripts=subscripts), g)]
    for i, x in enumerate(operands):
        wanted = needed[i + 1] and i != position
        grads.append(
            as_like(F.einsum_adjoint(g, *operands, subscripts=subscripts, position=i), x)
            if wanted
            else None
        )
    return grads


def _spec(*operands: TensorSpec, subscripts: str) -> tuple[Any, Any]:
    dtype = np.result_type(*(x.dtype for x in operands))
    left, output = subscripts.split("->")
    ranks = []
    for term, x in zip(left.split(","), operands, strict=True):
        if x.shape is None and "..." in term:
            return None, dtype
        ranks.append(len(term) if x.shape is None else len(x.shape))
    terms, output = labelled(subscripts, tuple(ranks))
    sizes: dict[str, Any] = {}
    for term, x in zip(terms, operands, strict=True):
        for label, n in zip(term, x.shape or (None,) * len(term), strict=True):
            where = f"einsum: label {label!r} of {subscripts!r}"
            known = broadcast_shapes((sizes.get(label, 1),), (n,), op=where)
            sizes[label] = known and known[0]
    return tuple(sizes[label] for label in output), dtype


def _einsum_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``einsum`` and of its adjoint: one label more."""
    left, output = params["subscripts"].split("->")
    terms = left.split(",")
    new = unused_label(params["subscripts"])
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


def unused_label(used: str) -> str:
    """Return a letter that is not yet a label."""
    return next(letter for letter in ascii_letters if letter not in used)


_einsum = op(
    "einsum",
    _kernel,
    vjp=_vjp,
    shapes_only=("out",),
    infer=_spec,
    batch=_einsum_rule,
    jvp="multilinear",
    doc="Sum products over labelled axes.",
)
op(
    "einsum_adjoint",
    _adjoint,
    vjp=_adjoint_vjp,
    shapes_only=("out",),
    infer=lambda g, *operands, subscripts, position: (
        operands[position].shape,
        np.result_type(g.dtype, *(x.dtype for i, x in enumerate(operands) if i != position)),
    ),
    batch=_einsum_rule,
    doc="Send a gradient of ``einsum`` back to the operand at ``position``.",
)


def _spelt(arguments: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """Return subscripts and operands for NumPy's other form: ``x, [0, 1], y, [1, 2], [0, 2]``."""

    def term(labels: Any) -> str:
        try:
            return "".join("..." if n is Ellipsis else ascii_letters[n] for n in labels)
        except (TypeError, IndexError):
            raise TypeError(
                "einsum: the subscripts are a string, or after each operand a list of integers "
                f"from 0 to {len(ascii_letters) - 1}, got {type(labels).__name__}"
            ) from None

    pairs = len(arguments) // 2
    text = ",".join(term(arguments[2 * i + 1]) for i in range(pairs))
    output = f"->{term(arguments[-1])}" if len(arguments) % 2 else ""
    return text + output, tuple(arguments[0 : 2 * pairs : 2])


@named
def einsum(subscripts: Any, *operands: Any, optimize: Any = True) -> Tensor:
    """Return sums of products over labelled axes.

    Parameters
    ----------
    subscripts
        A label (letter) for each axis of each operand, then ``->`` and the labels of the result:
        ``"ij,jk->ik"``. ``...`` stands for axes that broadcast. A label twice in one operand takes
        the diagonal. Without ``->``, the result has the labels that occur once, sorted.
    operands
        The tensors. As in NumPy, ``einsum(x, [0, 1], y, [1, 2], [0, 2])`` is the same with numbers.
    optimize
        Ignored, for NumPy's signature: the order of the products is always chosen here.

    Returns
    -------
    Tensor
        A tensor with an axis per label of the result, of the operands' promoted dtype.

    Raises
    ------
    ValueError
        If the subscripts do not fit the operands, or sizes of the same label differ.
    TypeError
        If the subscripts are neither a string nor lists of integers.

    Notes
    -----
    The gradient of an operand is a sum of products too, of the upstream gradient with the other
    operands (conjugated if complex), over the labels that the operand lacks.

    Examples
    --------
    >>> gt.einsum("ij,ij->i", gt.ones((2, 3)), gt.ones((2, 3))).tolist()
    [3.0, 3.0]
    >>> gt.einsum("ii", gt.constant([[1, 2], [3, 4]])).item()
    5
    """
    if not isinstance(subscripts, str):
        subscripts, operands = _spelt((subscripts, *operands))
    operands = tuple(as_operands(operands))  # numbers have no axes
    dtypes = {x.dtype for x in operands}
    if len(dtypes) > 1 and len(operands) > 2:  # a product of two must not overflow on its way
        both = np.result_type(*dtypes).name
        operands = tuple(ops["cast"](x, dtype=both) for x in operands)
    return _einsum(*operands, subscripts=explicit(subscripts, len(operands)))


# -- tensordot -------------------------------------------------------------------------------------

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
    return _tensordot(*as_operands((x, y)), axes=pair)
