"""Shapes made of sizes that a trace does not know: eager = traced = batched = saved and loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt

SIZES = (0, 1, 2, 3, 7)


def drawn(shape: Sequence[Any], n: int, seed: int) -> Any:
    """Return a float64 array; sizes of the shape that are text are open, ``"n"`` being ``n``."""
    sizes = [n if size == "n" else 3 if isinstance(size, str) else size for size in shape]
    return np.random.default_rng([seed, n]).standard_normal(sizes)


def listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, (list, tuple)) else [results]


def specs_of(shapes: Sequence[Any], first: tuple[Any, ...] = ()) -> list[gt.TensorSpec]:
    return [
        gt.TensorSpec([*first, *(None if isinstance(n, str) else n for n in shape)], "float64")
        for shape in shapes
    ]


def slopes(fn: Callable[..., Any], *xs: Any) -> list[Any]:
    """Return gradients of the first and the second order of a function's floating results."""
    with gt.GradientTape() as outer:
        outer.watch(xs)
        with gt.GradientTape() as inner:
            inner.watch(xs)
            floats = [y for y in listed(fn(*xs)) if y.dtype.kind == "f"]
            loss = sum((gt.sum(y * y * y) for y in floats), gt.constant(0.0, "float64"))
        first = inner.gradient(loss, list(xs), unconnected_gradients="zero")
        total = sum((gt.sum(g * g) for g in first), gt.constant(0.0, "float64"))
    return [*first, *outer.gradient(total, list(xs), unconnected_gradients="zero")]


def assert_same(found: Any, wanted: Any, rtol: float = 0.0) -> None:
    """Check values (bit by bit by default), shapes and dtypes."""
    for mine, want in zip(listed(found), listed(wanted), strict=True):
        mine, want = np.asarray(mine), np.asarray(want)
        assert (mine.shape, mine.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(mine, want, rtol=rtol, atol=rtol)


def n_of(x: Any) -> Any:
    return x.shape[0]


V, M, S = ("n",), ("n", 3), ("n", "n")
PAIR = [("n",), ("m",)]

#: A name -> a function, the shapes of its inputs, and the shapes that a trace gives its results.
TABLE: dict[str, tuple[Callable[..., Any], list[Any], str]] = {
    # creation
    "zeros": (lambda x: x + gt.zeros((x.shape[0], 1)), [V], "n, n"),
    "ones of two sizes": (lambda x, y: gt.ones((x.shape[0] + 1, y.size)), PAIR, "n + 1, m"),
    "empty": (lambda x: gt.empty((n_of(x), 2)), [V], "n, 2"),
    "full": (lambda x: gt.full((n_of(x), 2), 7), [V], "n, 2"),
    "full of a tensor": (lambda x: gt.full((2, n_of(x)), x), [V], "2, n"),
    "full_like": (lambda x: gt.full_like(x, x.shape[0] / 2), [M], "n, 3"),
    "eye": (lambda x: gt.eye(n_of(x)) * x, [V], "n, n"),
    "eye of a diagonal": (
        lambda x: gt.eye(2 * n_of(x), n_of(x) + 1, k=n_of(x) // 2),
        [V],
        "2*n, n + 1",
    ),
    "identity": (lambda x: gt.identity(n_of(x), dtype="int32"), [V], "n, n"),
    "constant": (lambda x: gt.constant(2, shape=(n_of(x), 2)), [V], "n, 2"),
    # ranges
    "arange": (lambda x: gt.arange(n_of(x)), [V], "n"),
    "arange times x": (lambda x: gt.arange(n_of(x)) * x, [V], "n"),
    "arange of bounds": (lambda x: gt.arange(1, 2 * n_of(x), 3), [V], None),
    "arange backwards": (lambda x: gt.arange(n_of(x) - 1, -1, -1), [V], "n"),
    "arange of floats": (lambda x: gt.arange(0, n_of(x) / 2, 0.3), [V], None),
    "arange of a step": (lambda x: gt.arange(0, 12, n_of(x) + 1), [V], None),
    "arange of a dtype": (lambda x: gt.arange(n_of(x), dtype="float32"), [V], "n"),
    "arange of a float start": (lambda x: gt.arange(0.5, n_of(x)), [V], None),
    "linspace": (lambda x: gt.linspace(0, 1, n_of(x)), [V], "n"),
    "linspace without its end": (
        lambda x: gt.linspace(-1.0, n_of(x), n_of(x) + 2, endpoint=False),
        [V],
        "n + 2",
    ),
    "linspace of integers": (lambda x: gt.linspace(0, 9, n_of(x), dtype="int64"), [V], "n"),
    "linspace of tensors": (lambda x: gt.linspace(x, 2.0, n_of(x)), [M], "n, n, 3"),
    "linspace of tensors without its end": (
        lambda x: gt.linspace(x, n_of(x), n_of(x), endpoint=False, axis=1),
        [M],
        "n, n, 3",
    ),
    "linspace with its step": (lambda x: gt.linspace(0, 3, n_of(x), retstep=True), [V], "n | "),
    "linspace of tensors with its step": (
        lambda x: gt.linspace(x, 3.0, n_of(x), retstep=True),
        [V],
        "n, n | n",
    ),
    "logspace": (lambda x: gt.logspace(0, 2, n_of(x), base=2.0), [V], "n"),
    "logspace of tensors": (lambda x: gt.logspace(0, x, n_of(x)), [V], "n, n"),
    "geomspace": (lambda x: gt.geomspace(1, 8.0, n_of(x)), [V], "n"),
    "geomspace of tensors": (lambda x: gt.geomspace(1.0 + x * x, 9.0, n_of(x)), [V], "n, n"),
    "meshgrid": (lambda x, y: gt.meshgrid(x, y), PAIR, "m, n | m, n"),
    "meshgrid of ranges": (
        lambda x: gt.meshgrid(gt.arange(n_of(x)), x, indexing="ij"),
        [V],
        "n, n | n, n",
    ),
    "broadcast_arrays": (lambda x: gt.broadcast_arrays(x, x[:, None]), [V], "n, n | n, n"),
    "broadcast_shapes": (lambda x: gt.zeros(gt.broadcast_shapes((n_of(x), 1), (3,))), [V], "n, 3"),
    # tiling
    "tile": (lambda x: gt.tile(x, n_of(x)), [V], "n*n"),
    "tile of axes": (lambda x: gt.tile(x, (2, n_of(x) + 1)), [M], "2*n, 3*n + 3"),
    "repeat": (lambda x: gt.repeat(x, n_of(x)), [M], "3*n*n"),
    "repeat along an axis": (lambda x: gt.repeat(x, n_of(x) + 1, axis=1), [M], "n, 3*n + 3"),
    "repeat each": (lambda x: gt.repeat(x, [n_of(x), 0, 2], axis=1), [M], "n, n + 2"),
    # padding
    "pad": (lambda x: gt.pad(x, (n_of(x), 1)), [V], "2*n + 1"),
    "pad to a multiple": (lambda x: gt.pad(x, (0, -n_of(x) % 4)), [V], None),
    "pad axes": (lambda x: gt.pad(x, [(0, n_of(x)), (1, 1)]), [M], "2*n, 5"),
    "pad with a size": (lambda x: gt.pad(x, 1, constant_values=n_of(x)), [V], "n + 2"),
    "pad with several": (lambda x: gt.pad(x, (n_of(x), 1), constant_values=(1, 2)), [V], "2*n + 1"),
    "pad the edge": (lambda x: gt.pad(x, (n_of(x), 1), "edge"), [V], "2*n + 1"),
    "pad by reflection": (lambda x: gt.pad(x, n_of(x) // 2, "reflect"), [V], None),
    "pad around": (lambda x: gt.pad(x, ((0, n_of(x)), (n_of(x), 2)), "wrap"), [M], "2*n, n + 5"),
    "pad by a ramp": (
        lambda x: gt.pad(x, (n_of(x), 2), "linear_ramp", end_values=(1, 2)),
        [V],
        "2*n + 2",
    ),
    "pad with means": (lambda x: gt.pad(x, (n_of(x) - 1, 1), "mean"), [M], None),
    "pad with a mean": (lambda x: gt.pad(x, n_of(x) // 2, "mean"), [V], None),
    "pad with some maxima": (
        lambda x: gt.pad(x, (n_of(x), 1), "maximum", stat_length=2),
        [V],
        "2*n + 1",
    ),
    "pad with medians": (lambda x: gt.pad(x, 2, "median", stat_length=n_of(x)), [V], "n + 4"),
    # splitting
    "split at a half": (lambda x: gt.split(x, [n_of(x) // 2]), [V], None),
    "split in three": (lambda x: gt.split(gt.tile(x, 3), 3), [V], "n | n | n"),
    "split from the end": (lambda x: gt.split(x, [-2]), [M], None),
    "split at an unknown sign": (lambda x: gt.split(x, [n_of(x) - 2]), [V], None),
    "array_split": (lambda x: gt.array_split(x, 3), [M], None),
    "unstack": (lambda x: gt.unstack(x, axis=1), [M], "n | n | n"),
    # joining
    "concatenate": (lambda x, y: gt.concatenate([x, y, x]), PAIR, "2*n + m"),
    "concatenate with zeros": (
        lambda x: gt.concatenate([gt.zeros((n_of(x), 2)), x], axis=1),
        [M],
        "n, 5",
    ),
    "stack": (lambda x: gt.stack([x, gt.arange(n_of(x))], axis=1), [V], "n, 2"),
    "block": (
        lambda x: gt.block([[x, gt.zeros((n_of(x), 1))], [gt.ones((2, 4))]]),
        [M],
        "n + 2, 4",
    ),
    "column_stack": (lambda x: gt.column_stack([gt.ones(n_of(x)), x]), [M], "n, 4"),
    "hstack": (lambda x: gt.hstack([x, x]), [V], "2*n"),
    "vstack": (lambda x: gt.vstack([x, x]), [V], "2, n"),
    "dstack": (lambda x: gt.dstack([x, x]), [V], "1, n, 2"),
    # diagonals
    "tri": (lambda x: gt.tri(n_of(x), n_of(x) + 2, 1), [V], "n, n + 2"),
    "tril": (lambda x: gt.tril(x, n_of(x) // 2 - 1), [S], "n, m"),
    "triu of ones": (lambda x: gt.triu(gt.ones((n_of(x), n_of(x))), 1) * x, [S], None),
    "triu of a constant": (lambda x: gt.triu(np.ones((4, 4)), n_of(x) - 2), [V], "4, 4"),
    "diag": (lambda x: gt.diag(x, n_of(x) - 1), [V], None),
    "diag of a size": (lambda x: gt.diag(x, -n_of(x)), [V], "2*n, 2*n"),
    "diag of a matrix": (lambda x: gt.diag(x, n_of(x) // 2), [S], None),
    "diagflat": (lambda x: gt.diagflat(x), [M], "3*n, 3*n"),
    "diagonal": (lambda x: gt.diagonal(x, 1), [S], None),
    "fill_diagonal": (lambda x: gt.fill_diagonal(x, 5.0), [M], "n, 3"),
    "fill_diagonal with a vector": (
        lambda x, y: gt.fill_diagonal(x, y, wrap=True),
        [M, ("m",)],
        "n, 3",
    ),
    # rearrangement
    "roll": (lambda x: gt.roll(x, n_of(x) // 2), [M], "n, 3"),
    "roll axes": (lambda x: gt.roll(x, (1, -n_of(x)), axis=(0, 1)), [M], "n, 3"),
    "roll a constant": (lambda x: gt.roll(np.arange(5.0), n_of(x)), [V], "5"),
    "flip": (lambda x: gt.flip(x), [M], "n, 3"),
    "rot90": (lambda x: gt.rot90(x), [M], "3, n"),
    # editing
    "append": (lambda x, y: gt.append(x, y), PAIR, "n + m"),
    "delete the last": (lambda x: gt.delete(x, -1, axis=0), [M], "n - 1, 3"),
    "delete a place": (lambda x: gt.delete(x, n_of(x) // 2), [V], "n - 1"),
    "delete a slice": (lambda x: gt.delete(x, slice(1, None, 2)), [V], None),
    "delete several": (lambda x: gt.delete(x, [0, n_of(x) - 1], axis=0), [M], None),
    "insert": (lambda x: gt.insert(x, n_of(x) // 2, 9.0), [V], "n + 1"),
    "insert rows": (lambda x: gt.insert(x, 1, gt.ones((n_of(x), 3)), axis=0), [M], "2*n, 3"),
    "insert several": (lambda x: gt.insert(x, [0, n_of(x)], [1.0, 2.0]), [V], "n + 2"),
    "insert at a slice": (lambda x: gt.insert(x, slice(0, n_of(x)), 0.0), [V], "2*n"),
    "resize": (lambda x: gt.resize(x, (2, n_of(x))), [V], "2, n"),
    "resize a size": (lambda x: gt.resize(x, 5), [V], "5"),
    # indices
    "indices": (lambda x: gt.indices((n_of(x), 2)), [V], "2, n, 2"),
    "indices of each axis": (lambda x: gt.indices((n_of(x), 2), sparse=True), [V], "n, 1 | 1, 2"),
    "tril_indices": (lambda x: x[gt.tril_indices(n_of(x))], [S], None),
    "tril_indices of a diagonal": (lambda x: gt.tril_indices(n_of(x), n_of(x) - 2, 4), [V], None),
    "triu_indices": (lambda x: x[gt.triu_indices(n_of(x), 1)], [S], None),
    "triu_indices_from": (lambda x: x[gt.triu_indices_from(x, -1)], [M], None),
    "tril_indices_from": (lambda x: x[gt.tril_indices_from(x)], [M], None),
    "diag_indices": (lambda x: x[gt.diag_indices(n_of(x))], [S], "n"),
    "diag_indices_from": (lambda x: x[gt.diag_indices_from(x)], [S], "n"),
    "ix_": (lambda x: x[gt.ix_(gt.arange(n_of(x)), [0, 2])], [M], "n, 2"),
    # reshaping and others
    "reshape": (lambda x: x.reshape(n_of(x) * 3), [M], "3*n"),
    "reshape what is left": (lambda x: gt.reshape(x, (-1, n_of(x))), [M], "3, n"),
    "reshape by columns": (lambda x: gt.reshape(x, (3, n_of(x)), order="F"), [M], "3, n"),
    "ravel": (lambda x: x.ravel(), [M], "3*n"),
    "expand_dims": (lambda x: gt.expand_dims(x, (0, -1)), [V], "1, n, 1"),
    "squeeze": (lambda x: gt.squeeze(x[:, None], 1), [V], "n"),
    "transpose": (lambda x: gt.moveaxis(x, 0, 1).T.swapaxes(0, 1), [M], "3, n"),
    "broadcast_to": (lambda x: gt.broadcast_to(x, (n_of(x), n_of(x), 3)), [M], "n, n, 3"),
    "apply_along_axis": (
        lambda x: gt.apply_along_axis(lambda v: v[::-1] * v.size, 1, x),
        [M],
        "n, 3",
    ),
    "piecewise": (lambda x: gt.piecewise(x, [x < 0], [lambda v: -v, 2.0]), [V], "n"),
}


#: What no batch can run, in a trace or not.
NOT_BATCHED = {"piecewise"}


def outcome(fn: Callable[..., Any], *xs: Any) -> Any:
    """Return a function's result, or None where it refuses."""
    try:
        with np.errstate(all="ignore"):
            return fn(*xs)
    except (ValueError, IndexError, ZeroDivisionError):
        return None


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", TABLE)
def test_eager_traced_batched_and_saved_are_one(name: str, tmp_path: Path) -> None:
    fn, shapes, wanted = TABLE[name]

    class Program(gt.Module):
        @gt.function(input_signature=specs_of(shapes))
        def run(self, *xs: Any) -> Any:
            return fn(*xs)

    program = Program()
    traced = gt.function(fn, input_signature=specs_of(shapes))
    graph = traced.get_concrete_function(*specs_of(shapes)).graph
    if wanted is not None:
        texts = [", ".join(map(str, y.shape)) for y in graph.outputs]
        assert " | ".join(texts) == wanted
    sloped = gt.function(lambda *xs: slopes(fn, *xs), input_signature=specs_of(shapes))
    batched = gt.function(gt.vmap(fn), input_signature=specs_of(shapes, (None,)))
    gt.save(program, tmp_path / "program.h5")
    loaded = gt.load(tmp_path / "program.h5")
    ran = 0
    for n in SIZES:
        xs = [gt.constant(drawn(shape, n, i)) for i, shape in enumerate(shapes)]
        eager = outcome(fn, *xs)
        if eager is None:
            assert outcome(traced, *xs) is None, n
            assert outcome(loaded.run, *xs) is None, n
            continue
        ran += 1
        assert_same(traced(*xs), eager)
        assert_same(loaded.run(*xs), eager)
        assert_same(sloped(*xs), slopes(fn, *xs), 1e-12)
        assert_same(slopes(loaded.run, *xs), slopes(fn, *xs), 1e-12)
        if n:
            assert_same(tangents(traced, xs), tangents(fn, xs), 1e-12)
        if name in NOT_BATCHED:
            continue
        pairs = [gt.stack([x, 2 * x + 1]) for x in xs]
        each = [listed(fn(*(pair[i] for pair in pairs))) for i in range(2)]
        wanted_pairs = [gt.stack(list(pair)) for pair in zip(*each, strict=True)]
        assert_same(gt.vmap(traced)(*pairs), wanted_pairs, 1e-15)
        assert_same(batched(*pairs), wanted_pairs, 1e-15)
    assert ran >= 3


#: What a trace refuses: a function, its inputs' shapes, and the words.
REFUSED: dict[str, tuple[Callable[..., Any], list[Any], str]] = {
    "a number of parts": (lambda x: gt.split(x, n_of(x)), [V], "split: the number of parts .* n,"),
    "nearly equal parts": (lambda x: gt.array_split(x, n_of(x)), [V], "array_split: the number of"),
    "a list of rows": (lambda x: gt.unstack(x), [V], "unstack: the size of axis 0 is unknown"),
    "a number of turns": (lambda x: gt.rot90(x, n_of(x)), [M], "rot90: the number of right angles"),
    "odd mirrors": (lambda x: gt.pad(x, 2, "reflect", reflect_type="odd"), [V], "pad: .*odd"),
    "a number of axes": (lambda x: gt.diag_indices(3, n_of(x)), [V], "diag_indices: ndim"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_decides_the_form_of_a_trace_is_refused_in_words(name: str) -> None:
    fn, shapes, words = REFUSED[name]
    with pytest.raises((gt.errors.TraceError, ValueError), match=words):
        gt.function(fn, input_signature=specs_of(shapes)).get_concrete_function()


#: What fits in no run.
NEVER: dict[str, tuple[Callable[..., Any], list[Any], str]] = {
    "joined": (lambda x: gt.concatenate([gt.ones((3, 2)), x]), [M], "concatenate: shapes"),
    "joined across": (
        lambda x: gt.concatenate([x, gt.pad(x, 1)], axis=1),
        [M],
        "concatenate: shapes",
    ),
    "stacked": (lambda x: gt.stack([x, gt.ones(n_of(x) + 1)]), [V], "stack: arrays"),
    "reshaped": (lambda x: gt.reshape(x, 3 * n_of(x) + 1), [M], "reshape: 3.n elements"),
    "broadcast": (lambda x: gt.broadcast_to(gt.ones(n_of(x) + 2), (n_of(x),)), [V], "does not"),
    "padded": (lambda x: gt.pad(x, -n_of(x) - 1), [V], "pad: pad_width must be at least 0"),
    "cut": (lambda x: gt.split(x, [n_of(x) + 1, n_of(x)]), [V], "split: indices must ascend"),
    "filled": (lambda x: gt.constant([1, 2], shape=(n_of(x) + 3,)), [V], "constant: a value"),
    "repeated": (lambda x: gt.repeat(gt.ones(n_of(x) + 3), [1, n_of(x)]), [V], "repeat: 2 repeats"),
    "counted": (lambda x: gt.linspace(0, 1, -n_of(x) - 1), [V], "linspace: num must be at least 0"),
    "taken apart": (lambda x: gt.unstack(gt.ones(n_of(x) + 3), num=2), [V], "unstack: axis 0"),
    "diagonals": (lambda x: gt.diag_indices_from(gt.ones((n_of(x), n_of(x) + 1))), [V], "one size"),
    "resized": (lambda x: gt.resize(x, (-n_of(x) - 1,)), [V], "resize: sizes must be at least 0"),
}


@pytest.mark.parametrize("name", NEVER)
def test_what_fits_in_no_run_is_an_error_of_the_trace(name: str) -> None:
    fn, shapes, words = NEVER[name]
    with pytest.raises(ValueError, match=words):
        gt.function(fn, input_signature=specs_of(shapes)).get_concrete_function()


#: What some runs refuse, as a call without a trace does; the sizes, and the words.
AT_TIMES: dict[str, tuple[Callable[..., Any], list[Any], int, str]] = {
    "equal parts": (lambda x: gt.split(x, 2), [V], 3, "split: size 3 does not divide into 2"),
    "parts in order": (lambda x: gt.split(x, [2, n_of(x) - 2]), [V], 3, "split: indices must asc"),
    "widths": (lambda x: gt.pad(x, n_of(x) - 2), [V], 1, "pad: pad_width must be at least 0"),
    "widths of edges": (lambda x: gt.pad(x, n_of(x) - 2, "edge"), [V], 1, "pad"),
    "repeats": (lambda x: gt.repeat(x, [1, 2]), [V], 3, "repeat: 2 repeats do not fit"),
    "repeats of a vector": (lambda x: gt.repeat(x, [1, n_of(x)], axis=0), [M], 1, "repeat: 2"),
    "nothing to extend": (lambda x: gt.pad(x, 1, "mean"), [V], 0, "pad: mode 'mean' cannot extend"),
    "no vectors": (lambda x: gt.apply_along_axis(gt.sum, 1, x), [M], 0, "there are no vectors"),
    "numbers": (lambda x: gt.linspace(0, 1, n_of(x) - 2), [V], 1, "negative"),
    "a place": (lambda x: gt.delete(x, 4), [V], 3, "delete|out of bounds"),
    "another place": (lambda x: gt.insert(x, 4, 1.0), [V], 3, "insert|out of bounds"),
    "sizes": (lambda x: gt.zeros(n_of(x) - 2), [V], 1, "negative|broadcast"),
    "a matrix": (lambda x: x * gt.eye(n_of(x) - 2), [V], 1, "negative"),
    "cubes": (lambda x: gt.diag_indices_from(x), [("n", 3)], 2, "of one size"),
}


@pytest.mark.parametrize("name", AT_TIMES)
def test_what_a_run_finds_wrong_is_an_error_of_the_run(name: str) -> None:
    fn, shapes, n, words = AT_TIMES[name]
    x = gt.constant(drawn(shapes[0], n, 0))
    with pytest.raises((ValueError, IndexError)):
        fn(x)
    with pytest.raises((ValueError, IndexError), match=words):
        gt.function(fn, input_signature=specs_of(shapes))(x)


#: Functions of a matrix and an integer that the trace computes.
OF_INTEGERS: dict[str, Callable[..., Any]] = {
    "arange": lambda x, k: gt.arange(0, 3 * k, k),
    "eye": lambda x, k: gt.eye(3, k + 1, k=k),
    "tri": lambda x, k: gt.tri(k, k=k),
    "tril": lambda x, k: gt.tril(x, k),
    "diag": lambda x, k: gt.diag(x[0], k),
    "diagonal": lambda x, k: gt.diagonal(x, k),
    "roll": lambda x, k: gt.roll(x, [k, 1], axis=(0, 1)),
    "repeat": lambda x, k: gt.repeat(x, [k, 1, 2, k], axis=0),
    "tile": lambda x, k: gt.tile(x, (k, 1)),
    "pad": lambda x, k: gt.pad(x, ((k, 0), (0, 1)), "reflect"),
    "split": lambda x, k: gt.split(x, [k]),
    "delete": lambda x, k: gt.delete(x, k, axis=0),
    "insert": lambda x, k: gt.insert(x, k, 1.0, axis=0),
    "resize": lambda x, k: gt.resize(x, (k, 3)),
    "linspace": lambda x, k: gt.linspace(0, k, k),
    "tril_indices": lambda x, k: gt.tril_indices(k),
    "indices": lambda x, k: gt.indices((k, 2)),
    "zeros": lambda x, k: gt.zeros([k, 2]),
    "constant": lambda x, k: gt.constant(1.0, shape=(k,)),
    "reshape": lambda x, k: x.reshape(k, -1),
}


@pytest.mark.parametrize("name", OF_INTEGERS)
def test_integers_that_a_trace_computes_are_sizes(name: str) -> None:
    fn = OF_INTEGERS[name]
    specs = [gt.TensorSpec([None, None], "float64"), gt.TensorSpec([], "int64")]
    traced = gt.function(fn, input_signature=specs)
    x = gt.constant(drawn((4, 3), 0, 0))
    for k in (1, 2, 3):
        if 4 * 3 % k == 0 or name != "reshape":
            assert_same(traced(x, gt.constant(k)), fn(x, gt.constant(k)))


#: What sizes that are known make: the nodes of the graph.
KNOWN: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "arange": (lambda x: x * gt.arange(x.shape[0]), ["multiply"]),
    "eye": (lambda x: x * gt.eye(x.shape[0]), ["multiply"]),
    "pad": (lambda x: gt.pad(x, x.shape[0]), ["pad"]),
    "array_split": (lambda x: gt.array_split(x, 2), ["split"]),
    "delete": (lambda x: gt.delete(x, 1), ["reshape", "getitem", "getitem", "concatenate"]),
    "meshgrid": (lambda x: gt.meshgrid(x, x), ["reshape", "reshape", *["broadcast_to"] * 2]),
    "linspace": (lambda x: gt.linspace(0, 1, x.shape[0]) + x, ["add"]),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_sizes_need_no_ops_of_sizes(name: str) -> None:
    fn, wanted = KNOWN[name]
    graph = gt.function(fn).get_concrete_function(gt.TensorSpec([4])).graph
    assert [node.op.name for node in graph.nodes] == wanted


def tangents(fn: Callable[..., Any], xs: list[Any]) -> list[Any]:
    """Return the derivatives of floating results towards ones."""
    with gt.ForwardAccumulator(list(xs), [gt.ones_like(x) for x in xs]) as forward:
        results = [y for y in listed(fn(*xs)) if y.dtype.kind == "f"]
    return [forward.jvp(y, unconnected_gradients="zero") for y in results]
