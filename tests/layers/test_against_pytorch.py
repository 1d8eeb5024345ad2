"""Layers beside PyTorch's, with the same weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradtape import layers as L

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install torch")
F = torch.nn.functional
RANDOM = np.random.default_rng(0)


def first(x: Any) -> Any:
    """Return images with their channels where PyTorch has them."""
    return torch.tensor(np.moveaxis(np.asarray(x), -1, 1).copy())


def last(y: Any) -> Any:
    return np.moveaxis(y.detach().numpy(), 1, -1)


def kernel(layer: Any, name: str = "kernel") -> Any:
    """Return a kernel ``(*window, a, b)`` as ``(b, a, *window)``."""
    w = getattr(layer, name).numpy()
    return torch.tensor(np.moveaxis(w, (-1, -2), (0, 1)).copy())


def images(rank: int, channels: int = 4) -> Any:
    return RANDOM.standard_normal((2, *(9, 8, 7)[:rank], channels)).astype("float32")


def conv(rank: int, **settings: Any) -> tuple[Any, Any]:
    x = images(rank)
    layer = getattr(L, f"Conv{rank}D")(6, 3, bias_initializer="random_normal", **settings)
    y = layer(x)
    theirs = getattr(F, f"conv{rank}d")(
        first(x),
        kernel(layer),
        torch.tensor(layer.bias.numpy()),
        stride=settings.get("strides", 1),
        padding=settings.get("padding", 0),
        dilation=settings.get("dilation_rate", 1),
        groups=settings.get("groups", 1),
    )
    return y, last(theirs)


def transposed(rank: int, padding: int = 0, **settings: Any) -> tuple[Any, Any]:
    x = images(rank)
    layer = getattr(L, f"Conv{rank}DTranspose")(6, 3, bias_initializer="random_normal", **settings)
    y = layer(x)
    added = settings.get("output_padding")
    theirs = getattr(F, f"conv_transpose{rank}d")(
        first(x),
        kernel(layer),
        torch.tensor(layer.bias.numpy()),
        stride=settings.get("strides", 1),
        padding=padding,
        output_padding=0 if added is None else added,
        dilation=settings.get("dilation_rate", 1),
    )
    return y, last(theirs)


def depthwise(rank: int) -> tuple[Any, Any]:
    x = images(rank)
    layer = getattr(L, f"DepthwiseConv{rank}D")(3, depth_multiplier=2, use_bias=False)
    y = layer(x)
    w = np.moveaxis(layer.kernel.numpy(), (-2, -1), (0, 1))  # (channels, multiplier, *window)
    w = torch.tensor(w.reshape(-1, 1, *w.shape[2:]).copy())
    return y, last(getattr(F, f"conv{rank}d")(first(x), w, groups=4))


def pooled(kind: str, rank: int, **settings: Any) -> tuple[Any, Any]:
    x = images(rank)
    layer = getattr(L, f"{'Max' if kind == 'max' else 'Average'}Pooling{rank}D")(**settings)
    theirs = getattr(F, f"{kind}_pool{rank}d")(
        first(x), settings.get("pool_size", 2), settings.get("strides")
    )
    return layer(x), last(theirs)


def enlarged(size: Any, mode: str) -> tuple[Any, Any]:
    x = images(2)
    theirs = F.interpolate(first(x), scale_factor=size, mode=mode)
    return L.UpSampling2D(size, interpolation=mode)(x), last(theirs)


def normalised(kind: str) -> tuple[Any, Any]:
    x = images(2)
    gamma, beta = (RANDOM.standard_normal(4).astype("float32") for _ in range(2))
    if kind == "rms":
        layer = L.RMSNormalization()
        layer(x)
        layer.gamma.assign(gamma)
        return layer(x), F.rms_norm(torch.tensor(x), (4,), torch.tensor(gamma), 1e-6).numpy()
    layer = L.LayerNormalization() if kind == "layer" else L.GroupNormalization(2)
    layer(x)
    layer.gamma.assign(gamma)
    layer.beta.assign(beta)
    weights = torch.tensor(gamma), torch.tensor(beta)
    if kind == "layer":
        return layer(x), F.layer_norm(torch.tensor(x), (4,), *weights, 1e-3).numpy()
    return layer(x), last(F.group_norm(first(x), 2, *weights, 1e-3))


def recurrent(name: str) -> tuple[Any, Any]:
    x = RANDOM.standard_normal((3, 7, 5)).astype("float32")
    layer = getattr(L, name)(4, return_sequences=True, bias_initializer="random_normal")
    y = layer(x)
    theirs = getattr(torch.nn, {"SimpleRNN": "RNN"}.get(name, name))(5, 4, batch_first=True)
    bias = layer.bias.numpy()
    parts = [layer.kernel.numpy(), layer.recurrent_kernel.numpy(), *np.atleast_2d(bias)]
    if name == "GRU":  # PyTorch has the reset gate first
        parts = [np.concatenate([np.split(p, 3, -1)[i] for i in (1, 0, 2)], -1) for p in parts]
    else:
        parts.append(np.zeros_like(bias))
    with torch.no_grad():
        names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        for name, part in zip(names, parts, strict=True):
            getattr(theirs, name).copy_(torch.tensor(part.T.copy()))
    return y, theirs(torch.tensor(x))[0].detach().numpy()


def attention(causal: bool, masked: bool) -> tuple[Any, Any]:
    query, value = (RANDOM.standard_normal((3, n, 8)).astype("float32") for n in (5, 5))
    layer = L.MultiHeadAttention(2, 4, bias_initializer="random_normal")
    mask = RANDOM.random((3, 5, 5)) > 0.3
    mask[..., 0] = True
    given = mask if masked else None
    y = layer(query, value, attention_mask=given, use_causal_mask=causal)
    theirs = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    parts = (layer.query_dense, layer.key_dense, layer.value_dense)
    with torch.no_grad():
        weights = np.concatenate([part.kernel.numpy().reshape(8, 8).T for part in parts])
        theirs.in_proj_weight.copy_(torch.tensor(weights))
        theirs.in_proj_bias.copy_(
            torch.tensor(np.concatenate([part.bias.numpy().reshape(8) for part in parts]))
        )
        out = layer.output_dense
        theirs.out_proj.weight.copy_(torch.tensor(out.kernel.numpy().reshape(8, 8).T.copy()))
        theirs.out_proj.bias.copy_(torch.tensor(out.bias.numpy()))
    hidden = np.zeros((3, 5, 5), bool)
    hidden |= ~mask if masked else False
    hidden |= ~np.tril(np.ones((5, 5), bool)) if causal else False
    a, b = torch.tensor(query), torch.tensor(value)
    found = theirs(a, b, b, attn_mask=torch.tensor(np.repeat(hidden, 2, 0)))[0]
    return y, found.detach().numpy()


def activated(layer: Any, theirs: Callable[[Any], Any]) -> tuple[Any, Any]:
    x = RANDOM.standard_normal((4, 5)).astype("float32") * 2
    return layer(x), theirs(torch.tensor(x)).detach().numpy()


CASES: dict[str, Callable[[], tuple[Any, Any]]] = {
    **{f"Conv{n}D": lambda n=n: conv(n) for n in (1, 2, 3)},
    **{f"Conv{n}D strides": lambda n=n: conv(n, strides=2) for n in (1, 2, 3)},
    **{f"Conv{n}D same": lambda n=n: conv(n, padding="same") for n in (1, 2, 3)},
    "Conv2D dilated": lambda: conv(2, dilation_rate=2),
    "Conv2D groups": lambda: conv(2, groups=2),
    **{f"Conv{n}DTranspose": lambda n=n: transposed(n, strides=2) for n in (1, 2, 3)},
    "Conv2DTranspose more": lambda: transposed(2, strides=2, output_padding=1),
    "Conv2DTranspose same": lambda: same_transposed(),
    **{f"DepthwiseConv{n}D": lambda n=n: depthwise(n) for n in (1, 2)},
    **{f"MaxPooling{n}D": lambda n=n: pooled("max", n) for n in (1, 2, 3)},
    **{f"AveragePooling{n}D": lambda n=n: pooled("avg", n) for n in (1, 2, 3)},
    "MaxPooling2D strides": lambda: pooled("max", 2, pool_size=3, strides=2),
    "UpSampling2D": lambda: enlarged((2, 3), "nearest"),
    "UpSampling2D bilinear": lambda: enlarged((3, 2), "bilinear"),
    "LayerNormalization": lambda: normalised("layer"),
    "GroupNormalization": lambda: normalised("group"),
    "RMSNormalization": lambda: normalised("rms"),
    **{name: lambda name=name: recurrent(name) for name in ("SimpleRNN", "LSTM", "GRU")},
    "MultiHeadAttention": lambda: attention(False, False),
    "MultiHeadAttention causal": lambda: attention(True, False),
    "MultiHeadAttention masked": lambda: attention(False, True),
    "LeakyReLU": lambda: activated(L.LeakyReLU(0.2), torch.nn.LeakyReLU(0.2)),
    "ELU": lambda: activated(L.ELU(0.7), torch.nn.ELU(0.7)),
    "ReLU": lambda: activated(L.ReLU(max_value=6.0), torch.nn.ReLU6()),
    "Softmax": lambda: activated(L.Softmax(0), torch.nn.Softmax(0)),
}


def same_transposed() -> tuple[Any, Any]:
    """Keras' ``output_padding`` beside ``"same"``: PyTorch's, with half a window cut off."""
    x = images(2)
    layer = L.Conv2DTranspose(
        6, 3, strides=2, padding="same", output_padding=1, bias_initializer="random_normal"
    )
    y = layer(x)
    bias = torch.tensor(layer.bias.numpy())
    whole = F.conv_transpose2d(first(x), kernel(layer), bias, stride=2)
    return y, last(whole)[:, : y.shape[1], : y.shape[2]]


@pytest.mark.parametrize("name", CASES)
def test_values_are_pytorchs(name: str) -> None:
    ours, theirs = CASES[name]()
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-4, atol=1e-5)
