"""The programs that ``check_executor`` runs: each makes a function and the calls of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

import gradtape as gt


@dataclass
class Program:
    """A function to trace, and what to call it with.

    Attributes
    ----------
    run
        The function.
    calls
        The arguments of each call.
    variables
        The variables that it reads or assigns; their values are compared after each call.
    signature
        Its ``input_signature``, if sizes are unknown.
    around
        What calls the traced function, if it is not called itself.
    """

    run: Callable[..., Any]
    calls: Sequence[tuple[Any, ...]]
    variables: Sequence[Any] = ()
    signature: Sequence[Any] | None = None
    around: Callable[[Callable[..., Any]], Callable[..., Any]] = field(default=lambda run: run)


def _numbers(*shape: int, dtype: str = "float32", seed: int = 0) -> Any:
    values = np.random.default_rng([seed, *shape]).normal(size=shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * values[::-1] if shape else values
    return gt.constant(np.asarray(values).astype(dtype))


X, Y, Z = _numbers(4, 3), _numbers(4, 3, seed=1), _numbers(3, 5)


def _elementwise(x: Any, y: Any) -> Any:
    z = gt.sin(x) * y + gt.exp(-gt.square(x)) / (1.5 + gt.abs(y))
    return gt.where(x > y, z, gt.tanh(z)) - gt.sqrt(gt.abs(x))


def _arithmetic(dtype: str) -> Program:
    kind = np.dtype(dtype).kind
    numbers = np.arange(12).reshape(3, 4) % 5
    x = gt.constant((numbers + 0.5j * numbers[::-1] if kind == "c" else numbers).astype(dtype))

    def run(x: Any, y: Any) -> Any:
        if kind == "b":
            return x & y, x | ~y, gt.sum(gt.cast(x, "int64"))
        if kind in "iu":
            return x + y, x * y - y, x // (y + 1), gt.max(x, axis=0), gt.sum(x)
        return x + y, x * y - y, x / (y + 1), gt.mean(x, axis=0), gt.exp(-x * x)

    return Program(run, [(x, x[::-1])])


def _reductions(x: Any) -> Any:
    parts = [gt.sum(x), gt.mean(x, axis=0), gt.max(x, axis=1, keepdims=True), gt.argmax(x, axis=1)]
    return [*parts, gt.prod(x, axis=(0, 1)), gt.cumsum(x, axis=1), gt.std(x, axis=0)]


def _linear(x: Any, z: Any) -> Any:
    y = gt.matmul(x, z)
    return y, gt.einsum("ij,kj->ik", x, x), gt.matmul(gt.transpose(y), x)


def _moving(x: Any) -> Any:
    turned = gt.transpose(x)[::-1]
    pieces = gt.concat([turned, turned * 2], axis=1)
    return gt.reshape(pieces, (2, -1)), gt.stack([x[0], x[-1]]), x[:, None, 1:], gt.flip(x, axis=0)


def _several(x: Any) -> Any:
    y = x * 2.0
    return {
        "same": y,
        "again": y,
        "input": x,
        "view": x[1:],
        "constant": gt.ones(2),
        "pair": (y, x),
    }


def _loops(x: Any) -> Any:
    total, rows = gt.scan(lambda c, row: (0.5 * c + row, gt.sin(c)), gt.zeros(3), x)
    steps = gt.while_loop(
        lambda i, v: gt.sum(v) < 50.0, lambda i, v: (i + 1, v * 1.5 + 1), (0, total)
    )
    return total, rows, steps


def _choices(x: Any) -> Any:
    return gt.cond(gt.sum(x) > 0, lambda: gt.sin(x), lambda: x * 3.0)


def _loss(x: Any, z: Any) -> Any:
    return gt.sum(gt.square(gt.tanh(gt.matmul(x, z))))


def _inner_gradients(x: Any, z: Any) -> Any:
    def slope(x: Any) -> Any:
        return gt.grad(lambda x: _loss(x, z))(x)

    return slope(x), gt.grad(lambda x: gt.sum(gt.square(slope(x))))(x)


def _of_tape(run: Callable[..., Any]) -> Callable[..., Any]:
    def outside(x: Any, z: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch([x, z])
            y = run(x, z)
        return y, tape.gradient(y, [x, z])

    return outside


def _updates() -> Program:
    v, total, count = gt.Variable(X * 1.0), gt.Variable(gt.zeros(3)), gt.Variable(0)

    def run(x: Any) -> Any:
        before = v.value
        v.assign(0.5 * v + x)
        total.assign_add(gt.sum(v, axis=0))
        count.assign_add(1)
        return before, v * 2.0, count.value

    return Program(run, [(X,), (Y,)], [v, total, count])


def _swapped() -> Program:
    a, b = gt.Variable(gt.constant([1.0, 2.0])), gt.Variable(gt.constant([3.0, 4.0]))

    def run() -> None:
        first = a.value
        a.assign(b.value)
        b.assign(first)

    return Program(run, [(), ()], [a, b])


def _fails_late() -> Program:
    v = gt.Variable(gt.ones(2))

    def run(x: Any) -> Any:
        v.assign_add(gt.ones(2))
        return gt.linalg.inv(x)

    return Program(run, [(gt.eye(2),), (gt.zeros((2, 2)),), (gt.eye(2),)], [v])


def _random() -> Program:
    generator = gt.random.Generator(7)
    return Program(lambda x: x + generator.normal((4, 3)), [(X,), (X,)])


def _nothing_finite(x: Any) -> Any:
    return x + 1.0, gt.maximum(x, 0.0), gt.sqrt(x), 1.0 / x, gt.sum(x), gt.where(x > 0, x, -x)


def _chain(x: Any) -> Any:
    for i in range(150):
        x = gt.sin(x) + 0.01 * i if i % 3 else x * 0.5
    return x


SIZED = [(_numbers(n, 3), _numbers(3, 5)) for n in (4, 1, 0, 7)]
SPECIAL = gt.constant(np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3e38], "float32"))
STRIDED = gt.constant(np.arange(24.0).reshape(4, 6)).numpy()[:, ::2]

PROGRAMS: dict[str, Callable[[], Program]] = {
    "elementwise": lambda: Program(_elementwise, [(X, Y), (Y, X)]),
    **{
        f"dtype {name}": partial(_arithmetic, name)
        for name in (
            *("float16", "float32", "float64", "complex64", "complex128", "bool"),
            *("int8", "int16", "int32", "int64", "uint8", "uint32"),
        )
    },
    "sums": lambda: Program(_reductions, [(X,), (Y,)]),
    "products": lambda: Program(_linear, [(X, Z)]),
    "broadcasting": lambda: Program(lambda x, y: (x * y, x - y[None]), [(X, X[0]), (X, Y[1])]),
    "views": lambda: Program(_moving, [(X,), (Y,)]),
    "no axes": lambda: Program(lambda x: (gt.sin(x) * x, x > 0, x[None]), [(X[0, 0],), (Y[0, 0],)]),
    "weak scalars": lambda: Program(
        lambda x, n: (x * 2 + 1.5, 2**x, n * 2, n + 0.5, gt.maximum(n, 3)),
        [(X, gt.constant([1, 5])), (Y, gt.constant([4, 2]))],
    ),
    "unknown sizes": lambda: Program(
        lambda x, z: (gt.matmul(x, z), gt.sum(x, axis=0) / x.shape[0], gt.reshape(x, (-1,))),
        SIZED,
        signature=[gt.TensorSpec([None, 3]), gt.TensorSpec([3, None])],
    ),
    "unknown rank": lambda: Program(
        lambda x: gt.sin(x) * 2.0 + gt.sum(x),
        [(X,), (X[0],), (X[0, 0],)],
        signature=[gt.TensorSpec(None, "float32")],
    ),
    "several outputs": lambda: Program(_several, [(X,), (Y,)]),
    "no inputs": lambda: Program(lambda: (gt.ones((2, 2)) * 3.0, gt.arange(3)), [(), ()]),
    "empty arrays": lambda: Program(
        lambda x: (x * 2.0, gt.sum(x, axis=0), gt.matmul(gt.transpose(x), x)), [(gt.zeros((0, 3)),)]
    ),
    "special values": lambda: Program(_nothing_finite, [(SPECIAL,)]),
    "strided arrays": lambda: Program(
        lambda x: (x + 1.0, gt.sum(x, axis=0), gt.matmul(x, x.mT)),
        [(gt.Tensor(STRIDED),), (gt.Tensor(STRIDED.T),)],
    ),
    "choices": lambda: Program(_choices, [(X,), (-gt.abs(X),), (gt.abs(X),)]),
    "loops": lambda: Program(_loops, [(X,), (Y,)]),
    "gradients inside": lambda: Program(_inner_gradients, [(X, Z), (Y, Z)]),
    "gradients outside": lambda: Program(_loss, [(X, Z), (Y, Z)], around=_of_tape),
    "assignments": _updates,
    "swapped variables": _swapped,
    "random numbers": _random,
    "many nodes": lambda: Program(_chain, [(X,), (Y,)]),
    "failing ops": lambda: Program(
        lambda x, i: gt.take(x, i, axis=0) * 2.0,
        [(X, gt.constant([1, 2])), (X, gt.constant([0, 9])), (Y, gt.constant([1, 2]))],
    ),
    "failing after assignments": _fails_late,
}
