"""Reshaping, reordering, joining, cutting, picking."""

from __future__ import annotations

import numpy as np

import gradtape as gt

from .family import Family

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4))
Y = RNG.standard_normal((2, 3, 4))
MASK = X > 0
INDEX = np.array([[0, -1], [2, 0]])
ALONG = np.array([[0, 0, 3], [1, 1, 1], [2, 0, -1]])

# name -> (ours, NumPy's, inputs)
SAMPLES = {
    "reshape": (lambda x: gt.reshape(x, (2, 6)), lambda x: np.reshape(x, (2, 6)), [X]),
    "reshape -1": (lambda x: gt.reshape(x, (-1, 2)), lambda x: np.reshape(x, (-1, 2)), [X]),
    "reshape int": (lambda x: gt.reshape(x, 12), np.ravel, [X]),
    "ravel": (gt.ravel, np.ravel, [Y]),
    "transpose": (gt.transpose, np.transpose, [Y]),
    "transpose axes": (
        lambda x: gt.transpose(x, (1, -1, 0)),
        lambda x: np.transpose(x, (1, -1, 0)),
        [Y],
    ),
    "permute_dims": (
        lambda x: gt.permute_dims(x, (2, 0, 1)),
        lambda x: np.transpose(x, (2, 0, 1)),
        [Y],
    ),
    "matrix_transpose": (gt.matrix_transpose, np.matrix_transpose, [Y]),
    "moveaxis": (lambda x: gt.moveaxis(x, 0, -1), lambda x: np.moveaxis(x, 0, -1), [Y]),
    "moveaxis two": (
        lambda x: gt.moveaxis(x, (0, 1), (-1, 0)),
        lambda x: np.moveaxis(x, (0, 1), (-1, 0)),
        [Y],
    ),
    "swapaxes": (lambda x: gt.swapaxes(x, 0, -1), lambda x: np.swapaxes(x, 0, -1), [Y]),
    "swapaxes same": (lambda x: gt.swapaxes(x, 1, -2), lambda x: x, [Y]),
    "expand_dims": (lambda x: gt.expand_dims(x, -1), lambda x: np.expand_dims(x, -1), [X]),
    "expand_dims two": (
        lambda x: gt.expand_dims(x, (0, 2)),
        lambda x: np.expand_dims(x, (0, 2)),
        [X],
    ),
    "squeeze": (gt.squeeze, np.squeeze, [X[:, None, :1]]),
    "squeeze axis": (lambda x: gt.squeeze(x, 1), lambda x: np.squeeze(x, 1), [X[:, None, :1]]),
    "broadcast_to": (
        lambda x: gt.broadcast_to(x, (2, 3, 4)),
        lambda x: np.broadcast_to(x, (2, 3, 4)),
        [X[:, :1]],
    ),
    "full": (lambda x: gt.full((2, 3), x), lambda x: np.full((2, 3), x), [X[0, 0]]),
    "flip": (gt.flip, np.flip, [X]),
    "flip axis": (lambda x: gt.flip(x, (0, -1)), lambda x: np.flip(x, (0, -1)), [Y]),
    "roll": (lambda x: gt.roll(x, 2), lambda x: np.roll(x, 2), [X]),
    "roll axes": (
        lambda x: gt.roll(x, (1, -2), (0, 1)),
        lambda x: np.roll(x, (1, -2), (0, 1)),
        [X],
    ),
    "tril": (lambda x: gt.tril(x, 1), lambda x: np.tril(x, 1), [Y]),
    "tril of a vector": (lambda x: gt.tril(x[0]), lambda x: np.tril(x[0]), [X]),
    "triu": (gt.triu, np.triu, [X]),
    "diag": (lambda x: gt.diag(x, -1), lambda x: np.diag(x, -1), [X[0]]),
    "diag of a matrix": (gt.diag, np.diag, [X]),
    "diagonal": (lambda x: gt.diagonal(x, 1), lambda x: np.diagonal(x, 1), [X]),
    "diagonal axes": (
        lambda x: gt.diagonal(x, -1, 2, 0),
        lambda x: np.diagonal(x, -1, 2, 0),
        [Y],
    ),
    "trace": (gt.trace, np.trace, [X]),
    "tile": (lambda x: gt.tile(x, 2), lambda x: np.tile(x, 2), [X]),
    "tile more": (lambda x: gt.tile(x, (2, 1, 3)), lambda x: np.tile(x, (2, 1, 3)), [X]),
    "tile less": (lambda x: gt.tile(x, (2, 3)), lambda x: np.tile(x, (2, 3)), [Y]),
    "repeat": (lambda x: gt.repeat(x, 2, -1), lambda x: np.repeat(x, 2, -1), [X]),
    "repeat counts": (
        lambda x: gt.repeat(x, [2, 0, 1], 0),
        lambda x: np.repeat(x, [2, 0, 1], 0),
        [X],
    ),
    "repeat flat": (lambda x: gt.repeat(x, 3), lambda x: np.repeat(x, 3), [X]),
    "pad": (
        lambda x: gt.pad(x, ((1, 2), (0, 3)), constant_values=5),
        lambda x: np.pad(x, ((1, 2), (0, 3)), constant_values=5),
        [X],
    ),
    "pad all": (lambda x: gt.pad(x, 1), lambda x: np.pad(x, 1), [X]),
    "pad pair": (lambda x: gt.pad(x, (1, 0)), lambda x: np.pad(x, (1, 0)), [Y]),
    "concatenate": (
        lambda x, y: gt.concatenate([x, y, x], axis=-1),
        lambda x, y: np.concatenate([x, y, x], axis=-1),
        [X, X[:, :1]],
    ),
    "concatenate flat": (
        lambda x, y: gt.concat([x, y], axis=None),
        lambda x, y: np.concatenate([x, y], axis=None),
        [X, Y],
    ),
    "stack": (
        lambda x, y: gt.stack([x, y, x], axis=1),
        lambda x, y: np.stack([x, y, x], axis=1),
        [X, X * 2],
    ),
    "unstack": (
        lambda x: gt.unstack(x, axis=1)[2],
        lambda x: np.moveaxis(x, 1, 0)[2],
        [X],
    ),
    "split": (lambda x: gt.split(x, 2, axis=1)[1], lambda x: np.split(x, 2, axis=1)[1], [X]),
    "split at": (
        lambda x: gt.split(x, [1, 1, 9])[2],
        lambda x: np.split(x, [1, 1, 9])[2],
        [X],
    ),
    "take": (lambda x: gt.take(x, INDEX, axis=0), lambda x: np.take(x, INDEX, axis=0), [X]),
    "take last": (lambda x: gt.take(x, INDEX, -1), lambda x: np.take(x, INDEX, -1), [Y]),
    "take flat": (lambda x: gt.take(x, [7, 7, -1]), lambda x: np.take(x, [7, 7, -1]), [X]),
    "gather": (lambda x: gt.gather(x, INDEX), lambda x: x[INDEX], [X]),
    "gather axis": (lambda x: gt.gather(x, [1, 1], axis=1), lambda x: x[:, [1, 1]], [X]),
    "take_along_axis": (
        lambda x: gt.take_along_axis(x, ALONG, axis=1),
        lambda x: np.take_along_axis(x, ALONG, axis=1),
        [X],
    ),
    "take_along_axis broadcast": (
        lambda x: gt.take_along_axis(x, ALONG[:1, :1], axis=1),
        lambda x: np.take_along_axis(x, ALONG[:1, :1], axis=1),
        [X],
    ),
    "take_along_axis flat": (
        lambda x: gt.take_along_axis(x, np.array([3, 3, 0]), axis=None),
        lambda x: np.take_along_axis(x, np.array([3, 3, 0]), axis=None),
        [X],
    ),
    "sort": (lambda x: gt.sort(x, axis=0), lambda x: np.sort(x, axis=0), [X]),
    "sort flat": (lambda x: gt.sort(x, axis=None), lambda x: np.sort(x, axis=None), [X]),
    "x[1]": (lambda x: x[1], lambda x: x[1], [X]),
    "x[-1, 2]": (lambda x: x[-1, 2], lambda x: x[-1, 2], [X]),
    "x[::-2, 1:]": (lambda x: x[::-2, 1:], lambda x: x[::-2, 1:], [X]),
    "x[..., None, 0]": (lambda x: x[..., None, 0], lambda x: x[..., None, 0], [Y]),
    "x[index]": (lambda x: x[INDEX], lambda x: x[INDEX], [X]),
    "x[index, index]": (lambda x: x[INDEX, INDEX], lambda x: x[INDEX, INDEX], [X]),
    "x[index, :, 0]": (lambda x: x[[0, 1], :, 0], lambda x: x[[0, 1], :, 0], [Y]),
    "x[:, index, 0]": (lambda x: x[:, [0, 1, 1], 0], lambda x: x[:, [0, 1, 1], 0], [Y]),
    "x[1, ..., index]": (lambda x: x[1, ..., [0, 0]], lambda x: x[1, ..., [0, 0]], [Y]),
    "x[mask]": (lambda x: x[MASK], lambda x: x[MASK], [X]),
    "x[:, mask]": (lambda x: x[:, MASK], lambda x: x[:, MASK], [Y]),
    "x[mask row, index]": (
        lambda x: x[np.array([True, False, True]), [1, 1]],
        lambda x: x[np.array([True, False, True]), [1, 1]],
        [X],
    ),
    "x[[]]": (lambda x: x[[]], lambda x: x[[]], [X]),
}

ERRORS = [
    (lambda x: gt.reshape(x, (5, -1)), ValueError, "reshape"),
    (lambda x: gt.reshape(x, (7,)), ValueError, "reshape"),
    (lambda x: gt.reshape(x, (-1, -1)), ValueError, "reshape"),
    (lambda x: gt.broadcast_to(x, (3, 5)), ValueError, "broadcast_to"),
    (lambda x: gt.broadcast_to(x, (4,)), ValueError, "broadcast_to"),
    (lambda x: gt.transpose(x, (0, 0)), ValueError, "transpose"),
    (lambda x: gt.transpose(x, (0,)), ValueError, "transpose"),
    (lambda x: gt.swapaxes(x, 0, 2), ValueError, "swapaxes.*axis 2"),
    (lambda x: gt.moveaxis(x, 0, 2), ValueError, "moveaxis.*axis 2"),
    (lambda x: gt.moveaxis(x, (0, 1), 0), ValueError, "moveaxis"),
    (lambda x: gt.expand_dims(x, 4), ValueError, "expand_dims.*axis 4"),
    (lambda x: gt.squeeze(x, 0), ValueError, "squeeze.*size 3"),
    (lambda x: gt.flip(x, 2), ValueError, "flip"),
    (lambda x: gt.roll(x, 1, 2), ValueError, "roll"),
    (lambda x: gt.repeat(x, -1), ValueError, "repeat.*-1"),
    (lambda x: gt.repeat(x, [1, 2]), ValueError, "repeat.*size 12"),
    (lambda x: gt.repeat(x, [1, 2], 0), ValueError, "repeat.*size 3"),
    (lambda x: gt.repeat(x, 1.5), TypeError, "repeat.*1.5"),
    (lambda x: gt.pad(x, ((1, 1), (1, 1), (1, 1))), ValueError, "pad"),
    (lambda x: gt.pad(x, -1), ValueError, "pad.*at least 0"),
    (lambda x: gt.pad(x, 1.5), TypeError, "pad.*1.5"),
    (lambda x: gt.pad(x, 1, mode="empty"), ValueError, "pad.*empty"),
    (lambda x: gt.concatenate([x, x[:2]], axis=1), ValueError, "concatenate.*3"),
    (lambda x: gt.concatenate([x, x[0]]), ValueError, "concatenate"),
    (lambda x: gt.concatenate([]), ValueError, "concatenate.*none"),
    (lambda x: gt.concatenate([x, x], axis=2), ValueError, "concatenate.*axis 2"),
    (lambda x: gt.stack([x, x[0]]), ValueError, "stack"),
    (lambda x: gt.stack([x, x], axis=3), ValueError, "stack.*axis 3"),
    (lambda x: gt.unstack(x, num=2), ValueError, "unstack"),
    (lambda x: gt.split(x, 2), ValueError, "split.*3"),
    (lambda x: gt.split(x, 0), ValueError, "split.*at least 1"),
    (lambda x: gt.split(x, [2, 1]), ValueError, "split.*ascend"),
    (lambda x: gt.sort(x, axis=2), ValueError, "sort.*axis 2"),
    (lambda x: gt.take(x, 0.5), TypeError, "take.*float"),
    (lambda x: gt.take(x, 0, axis=2), ValueError, "take.*axis 2"),
    (lambda x: gt.take_along_axis(x, [0], axis=1), ValueError, "take_along_axis"),
    (lambda x: gt.take(x, 0, axis="x"), TypeError, "take.*'x'"),
    (lambda x: gt.diag(gt.stack([x, x])), ValueError, "diag"),
    (lambda x: gt.reshape(x, "ab"), TypeError, "reshape.*'ab'"),
    (lambda x: x[0, 0, 0], IndexError, r"getitem.*\(3, 4\)"),
    (lambda x: x[5], IndexError, "getitem.*5"),
    (lambda x: x[np.array([True, False])], IndexError, r"getitem.*\(3, 4\)"),
]

FAMILY = Family(samples=SAMPLES, errors=ERRORS, given=[X], values={"rtol": 0.0}, squared=True)
