"""Layers beside the modules of PyTorch that compute the same, with the same inputs.

``files/make_torch_layers.py`` stores what PyTorch computes with them, for tests without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import gradtape as gt

L = gt.layers


class Twin(NamedTuple):
    """A layer and its module.

    ``layer`` takes PyTorch's inputs with the channels moved last if ``images``, and images in its
    result have them moved back. ``uncalled`` is whether layers tell how features are ordered before
    the first call. ``module`` is an expression in ``nn``; ``run`` takes it and its inputs.
    """

    layer: Callable[[], Any]
    module: str
    shape: tuple[int, ...]
    images: bool = False
    call: Callable[..., Any] = lambda layer, x: layer(x)
    run: Callable[..., Any] = lambda module, x: module(x)
    kind: str = "normal"
    uncalled: bool = True


def _first(module: Any, x: Any) -> Any:
    return module(x)[0]


def _attended(module: Any, x: Any) -> Any:
    return module(x, x, x)[0]


def _apart(module: Any, x: Any) -> Any:
    return module(x, x[:, 1:, :4], x[:, 1:, 1:4])[0]


def _lstm(units: int) -> Any:
    return L.LSTM(units, return_sequences=True)


class Images(gt.Module):
    """A class whose call flattens images, and makes images of features."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = L.Sequential([L.Conv2D(4, 3), L.Activation("tanh")])
        self.hidden = L.Dense(24)
        self.outer = L.Conv2DTranspose(2, 2)

    def __call__(self, x: Any) -> Any:
        y = self.inner(x)
        y = gt.tanh(self.hidden(gt.reshape(y, (x.shape[0], -1))))
        return self.outer(gt.reshape(y, (-1, 3, 2, 4)))


class Patches(gt.Module):
    """A class that makes steps of an image's places, whose features are not those of images."""

    def __init__(self) -> None:
        super().__init__()
        self.patch, self.mix, self.out = L.Conv2D(4, 2, strides=2), L.Dense(4), L.Dense(2)

    def __call__(self, x: Any) -> Any:
        y = self.mix(gt.reshape(self.patch(x), (x.shape[0], -1, 4)))
        return self.out(gt.reshape(y, (x.shape[0], -1)))


class Frames(gt.Module):
    """A class that flattens each step of sequences of images."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.out = L.TimeDistributed(L.Conv2D(4, 3)), L.Dense(2)

    def __call__(self, x: Any) -> Any:
        return self.out(L.TimeDistributed(L.Flatten())(self.conv(x)))


class Recurrent(gt.Module):
    """A class that flattens sequences, which have the same axes everywhere."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.out = L.LSTM(4, return_sequences=True), L.Dense(2)

    def __call__(self, x: Any) -> Any:
        return self.out(L.Flatten()(self.lstm(x)))


def _functional() -> Any:
    x = gt.Input((6, 5, 3))
    y = L.BatchNorm(epsilon=1e-5)(L.Conv2D(4, 3)(x))
    z = L.Dense(3)(L.Flatten()(L.UpSampling2D(2)(y)))
    return gt.Model(x, z + L.Dense(3)(L.GlobalAveragePooling2D()(y)))


def _run_functional(conv: Any, norm: Any, long: Any, short: Any, x: Any) -> Any:
    y = norm(conv(x))
    z = y.repeat_interleave(2, 2).repeat_interleave(2, 3)
    return long(z.flatten(1)) + short(y.mean((2, 3)))


class Separable(gt.Module):
    """A layer whose module is two of PyTorch, by name."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = L.SeparableConv2D(5, 3, depth_multiplier=2)

    def __call__(self, x: Any) -> Any:
        return self.conv(x)


TWINS: dict[str, Twin] = {
    "Dense": Twin(lambda: L.Dense(4), "Linear(4, 4)", (5, 4)),
    "TimeDistributed": Twin(lambda: L.TimeDistributed(L.Dense(4)), "Linear(4, 4)", (3, 5, 4)),
    "Embedding": Twin(
        lambda: L.Embedding(6, 4, mask_zero=True),
        "Embedding(6, 4, padding_idx=0)",
        (3, 5),
        kind="integers",
    ),
    "Conv1D": Twin(lambda: L.Conv1D(4, 3), "Conv1d(4, 4, 3)", (2, 4, 7), True),
    "Conv2D": Twin(
        lambda: L.Conv2D(6, 3, strides=2, groups=2, use_bias=False),
        "Conv2d(4, 6, 3, stride=2, groups=2, bias=False)",
        (2, 4, 7, 8),
        True,
    ),
    "Conv2D of channels_first": Twin(
        lambda: L.Conv2D(4, 3, data_format="channels_first"), "Conv2d(4, 4, 3)", (2, 4, 7, 8)
    ),
    "Conv3D": Twin(lambda: L.Conv3D(3, 2), "Conv3d(3, 3, 2)", (2, 3, 4, 5, 4), True),
    "Conv1DTranspose": Twin(
        lambda: L.Conv1DTranspose(4, 3, strides=2),
        "ConvTranspose1d(4, 4, 3, stride=2)",
        (2, 4, 5),
        True,
    ),
    "Conv2DTranspose": Twin(
        lambda: L.Conv2DTranspose(4, 3, strides=2),
        "ConvTranspose2d(4, 4, 3, stride=2)",
        (2, 4, 3, 5),
        True,
    ),
    "Conv3DTranspose": Twin(
        lambda: L.Conv3DTranspose(3, 2), "ConvTranspose3d(3, 3, 2)", (2, 3, 3, 4, 2), True
    ),
    "DepthwiseConv1D": Twin(
        lambda: L.DepthwiseConv1D(3, depth_multiplier=3),
        "Conv1d(3, 9, 3, groups=3)",
        (2, 3, 6),
        True,
    ),
    "DepthwiseConv2D": Twin(
        lambda: L.DepthwiseConv2D(3, depth_multiplier=2),
        "Conv2d(3, 6, 3, groups=3)",
        (2, 3, 6, 7),
        True,
    ),
    "SeparableConv2D": Twin(
        Separable,
        "Named(conv=Named(depthwise=Conv2d(3, 6, 3, groups=3, bias=False), "
        "pointwise=Conv2d(6, 5, 1)))",
        (2, 3, 6, 7),
        True,
    ),
    "BatchNorm": Twin(lambda: L.BatchNorm(epsilon=1e-5), "BatchNorm2d(4)", (2, 4, 3, 5), True),
    "LayerNormalization": Twin(
        lambda: L.LayerNormalization(epsilon=1e-5), "LayerNorm(5)", (2, 3, 5)
    ),
    "LayerNormalization of two axes": Twin(
        lambda: L.LayerNormalization([1, 2], epsilon=1e-5), "LayerNorm((4, 5))", (3, 4, 5)
    ),
    "GroupNormalization": Twin(
        lambda: L.GroupNormalization(2, epsilon=1e-5), "GroupNorm(2, 4)", (2, 4, 3, 5), True
    ),
    "RMSNormalization": Twin(
        lambda: L.RMSNormalization(epsilon=1e-6), "RMSNorm(5, eps=1e-6)", (2, 3, 5)
    ),
    "PReLU": Twin(lambda: L.PReLU(shared_axes=[1, 2]), "PReLU(4)", (2, 4, 3, 5), True),
    "PReLU with one slope": Twin(lambda: L.PReLU(shared_axes=[1]), "PReLU()", (3, 5)),
    "SimpleRNN": Twin(
        lambda: L.SimpleRNN(4, return_sequences=True),
        "RNN(4, 4, batch_first=True)",
        (2, 5, 4),
        run=_first,
    ),
    "LSTM": Twin(lambda: _lstm(4), "LSTM(4, 4, batch_first=True)", (2, 5, 4), run=_first),
    "LSTM without bias": Twin(
        lambda: L.LSTM(4, use_bias=False, return_sequences=True),
        "LSTM(3, 4, bias=False, batch_first=True)",
        (2, 5, 3),
        run=_first,
    ),
    "GRU": Twin(
        lambda: L.GRU(4, return_sequences=True),
        "GRU(4, 4, batch_first=True)",
        (2, 5, 4),
        run=_first,
    ),
    "Bidirectional(LSTM)": Twin(
        lambda: L.Bidirectional(_lstm(4)),
        "LSTM(4, 4, batch_first=True, bidirectional=True)",
        (2, 5, 4),
        run=_first,
    ),
    "Bidirectional(GRU)": Twin(
        lambda: L.Bidirectional(L.GRU(4, return_sequences=True)),
        "GRU(3, 4, batch_first=True, bidirectional=True)",
        (2, 5, 3),
        run=_first,
    ),
    "RNN of LSTMCells": Twin(
        lambda: L.RNN([L.LSTMCell(4), L.LSTMCell(4)], return_sequences=True),
        "LSTM(4, 4, num_layers=2, batch_first=True)",
        (2, 5, 4),
        run=_first,
    ),
    "RNN of GRUCells": Twin(
        lambda: L.RNN([L.GRUCell(4), L.GRUCell(4)], return_sequences=True),
        "GRU(4, 4, num_layers=2, batch_first=True)",
        (2, 5, 4),
        run=_first,
    ),
    "SimpleRNNCell": Twin(
        lambda: L.SimpleRNNCell(4),
        "RNNCell(4, 4)",
        (3, 4),
        call=lambda cell, x: cell(x, [x])[0],
        run=lambda cell, x: cell(x, x),
    ),
    "LSTMCell": Twin(
        lambda: L.LSTMCell(4),
        "LSTMCell(4, 4)",
        (3, 4),
        call=lambda cell, x: cell(x, [x, x])[1][1],
        run=lambda cell, x: cell(x, (x, x))[1],
    ),
    "GRUCell": Twin(
        lambda: L.GRUCell(4),
        "GRUCell(4, 4)",
        (3, 4),
        call=lambda cell, x: cell(x, [x])[0],
        run=lambda cell, x: cell(x, x),
    ),
    "MultiHeadAttention": Twin(
        lambda: L.MultiHeadAttention(2, 3),
        "MultiheadAttention(6, 2, batch_first=True)",
        (2, 5, 6),
        run=_attended,
    ),
    "MultiHeadAttention without bias": Twin(
        lambda: L.MultiHeadAttention(3, 2, use_bias=False),
        "MultiheadAttention(6, 3, bias=False, batch_first=True)",
        (2, 5, 6),
        run=_attended,
    ),
    "MultiHeadAttention of other keys": Twin(
        lambda: L.MultiHeadAttention(2, 3),
        "MultiheadAttention(6, 2, kdim=4, vdim=3, batch_first=True)",
        (2, 5, 6),
        call=lambda layer, x: layer(x, x[:, 1:, 1:4], x[:, 1:, :4]),
        run=_apart,
    ),
    "Conv2D, Flatten, Dense": Twin(
        lambda: L.Sequential(
            [L.Conv2D(4, 3), L.MaxPooling2D(2), L.Flatten(), L.Dense(24), L.Dense(3)]
        ),
        "Sequential(Conv2d(3, 4, 3), MaxPool2d(2), Flatten(), Linear(24, 24), Linear(24, 3))",
        (2, 3, 8, 6),
        True,
    ),
    "Conv1D, Flatten, BatchNorm, PReLU, Dense": Twin(
        lambda: L.Sequential(
            [L.Conv1D(4, 3), L.Flatten(), L.BatchNorm(epsilon=1e-5), L.PReLU(), L.Dense(2)]
        ),
        "Sequential(Conv1d(4, 4, 3), Flatten(), BatchNorm1d(16), PReLU(16), Linear(16, 2))",
        (2, 4, 6),
        True,
    ),
    "Conv3D, Dropout, Flatten, Dense": Twin(
        lambda: L.Sequential([L.Conv3D(4, 2), L.Dropout(0.5), L.Flatten(), L.Dense(2)]),
        "Sequential(Conv3d(2, 4, 2), Dropout(0.5), Flatten(), Linear(48, 2))",
        (2, 2, 4, 3, 3),
        True,
    ),
    "Dense, Reshape, Conv2DTranspose": Twin(
        lambda: L.Sequential(
            [L.Dense(24), L.BatchNorm(epsilon=1e-5), L.Reshape((2, 3, 4)), L.Conv2DTranspose(2, 2)]
        ),
        "Sequential(Linear(5, 24), BatchNorm1d(24), Unflatten(1, (4, 2, 3)), "
        "ConvTranspose2d(4, 2, 2))",
        (3, 5),
        True,
    ),
    "Conv2D, GlobalAveragePooling2D, Dense": Twin(
        lambda: L.Sequential([L.Conv2D(4, 3), L.GlobalAveragePooling2D(), L.Dense(8), L.Dense(2)]),
        "Sequential(Conv2d(3, 4, 3), Sequential(AdaptiveAvgPool2d(1), Flatten()), Linear(4, 8), "
        "Linear(8, 2))",
        (2, 3, 8, 6),
        True,
    ),
    "Conv2D of channels_first, Flatten, Dense": Twin(
        lambda: L.Sequential(
            [L.Conv2D(4, 3, data_format="channels_first"), L.Flatten(), L.Dense(2)]
        ),
        "Sequential(Conv2d(3, 4, 3), Flatten(), Linear(32, 2))",
        (2, 3, 6, 4),
    ),
    "Conv2D, Permute, Flatten, Dense": Twin(
        lambda: L.Sequential([L.Conv2D(4, 3), L.Permute((3, 1, 2)), L.Flatten(), L.Dense(2)]),
        "Sequential(Conv2d(3, 4, 3), Identity(), Flatten(), Linear(64, 2))",
        (2, 3, 6, 6),
        True,
    ),
    "LSTM, Flatten, Dense": Twin(
        lambda: Recurrent(),
        "Named(lstm=LSTM(4, 4, batch_first=True), out=Linear(20, 2))",
        (2, 5, 4),
        run=lambda module, x: module.out(module.lstm(x)[0].flatten(1)),
    ),
    "a model of layers": Twin(
        _functional,
        "Named(layers=Named(**{'0': Conv2d(3, 4, 3), '1': BatchNorm2d(4), '4': Linear(192, 3), "
        "'6': Linear(4, 3)}))",
        (2, 3, 6, 5),
        True,
        run=lambda module, x: _run_functional(*module.layers, x),
    ),
    "a class": Twin(
        Images,
        "Named(inner=Sequential(Conv2d(3, 4, 3), Tanh()), hidden=Linear(48, 24), "
        "outer=ConvTranspose2d(4, 2, 2))",
        (2, 3, 6, 5),
        True,
        run=lambda module, x: module.outer(
            module.hidden(module.inner(x).flatten(1)).tanh().unflatten(1, (4, 3, 2))
        ),
    ),
    "a class with patches": Twin(
        Patches,
        "Named(patch=Conv2d(3, 4, 2, stride=2), mix=Linear(4, 4), out=Linear(24, 2))",
        (2, 3, 6, 4),
        True,
        run=lambda module, x: module.out(
            module.mix(module.patch(x).flatten(2).transpose(1, 2)).flatten(1)
        ),
    ),
    "a class with frames": Twin(
        Frames,
        "Named(conv=Conv2d(3, 4, 3), out=Linear(24, 2))",
        (2, 3, 3, 4, 5),
        call=lambda layer, x: layer(np.moveaxis(x, 2, -1)),
        uncalled=False,
        run=lambda module, x: module.out(
            module.conv(x.flatten(0, 1)).flatten(1).unflatten(0, (2, 3))
        ),
    ),
}


def inputs(name: str) -> np.ndarray[Any, Any]:
    """Return PyTorch's inputs of a case."""
    twin = TWINS[name]
    generator = np.random.default_rng(len(name))
    if twin.kind == "integers":
        return generator.integers(0, 6, twin.shape)
    return generator.normal(size=twin.shape).astype("float32")


def result(name: str, layer: Any, x: Any) -> np.ndarray[Any, Any]:
    """Return a layer's result with the axes of PyTorch's."""
    twin = TWINS[name]
    x = np.moveaxis(x, 1, -1) if twin.images and x.ndim > 2 else x
    y = np.asarray(twin.call(layer, x))
    return np.moveaxis(y, -1, 1) if twin.images and y.ndim > 2 else y


def randomized(layer: Any, seed: int = 0) -> Any:
    """Set all variables to random values: positive for variances."""
    generator = np.random.default_rng(seed)
    for path, variable in layer.named_variables.items():
        if variable.dtype.kind != "f":  # a state of random numbers
            continue
        value = generator.normal(size=variable.shape) * 0.5
        variable.assign(np.abs(value) + 0.5 if path.endswith("variance") else value)
    return layer


def table(stored: Any) -> list[str]:
    """Return the lines of the guide's table, with the differences that were measured."""
    rows = ["| layer | module in `torch.nn` | load | save |", "| --- | --- | --- | --- |"]
    for name, twin in TWINS.items():
        if name.startswith("a "):
            continue
        ends = [f"{stored[f'{name}/{way}'].item():.0e}" for way in ("load", "save")]
        module = twin.module.replace("Named(", "(")
        rows.append(f"| {name} | `{module}` | {ends[0]} | {ends[1]} |")
    return rows
