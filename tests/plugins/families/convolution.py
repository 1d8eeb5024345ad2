"""Convolutions."""

from __future__ import annotations

import numpy as np

import gradtape as gt

from .family import Family

RNG = np.random.default_rng(0)


def R(*shape):
    return RNG.standard_normal(shape)


def loops(x, w, strides=1, padding="valid", dilations=1, groups=1):
    """A convolution over one or two axes, by its definition."""
    count = w.ndim - 2
    strides, dilations = ((n,) * count if np.ndim(n) == 0 else n for n in (strides, dilations))
    spans = [(k - 1) * d + 1 for k, d in zip(w.shape, dilations)]
    if padding == "valid":
        pads = [(0, 0)] * count
    elif padding == "same":
        totals = [max((-(-n // s) - 1) * s + span - n, 0)
                  for n, s, span in zip(x.shape[1:-1], strides, spans)]  # fmt: skip
        pads = [(t // 2, t - t // 2) for t in totals]
    else:
        pads = [tuple(p) for p in np.broadcast_to(padding, (count, 2))]
    x = np.pad(x, [(0, 0), *pads, (0, 0)])
    out = [(n - span) // s + 1 for n, span, s in zip(x.shape[1:-1], spans, strides)]
    y = np.zeros((len(x), *out, w.shape[-1]), np.result_type(x, w))
    each, per = w.shape[-2], w.shape[-1] // groups
    for at in np.ndindex(*out):
        corner = [i * s for i, s in zip(at, strides)]
        seen = x[(slice(None), *(slice(c, c + span, d) for c, span, d in
                                 zip(corner, spans, dilations)))]  # fmt: skip
        for f in range(w.shape[-1]):
            g = f // per
            part = seen[..., g * each : (g + 1) * each] * w[..., f]
            y[(slice(None), *at, f)] = part.reshape(len(x), -1).sum(1)
    return y


CONVOLUTIONS = [
    ((2, 5, 2), (3, 2, 3), {}),
    ((2, 6, 2), (3, 2, 2), {"strides": 2, "padding": "same"}),
    ((1, 7, 1), (2, 1, 2), {"dilations": 3, "padding": (2, 1)}),
    ((1, 4, 4), (2, 2, 4), {"groups": 2}),
    ((1, 4, 5, 2), (2, 3, 2, 2), {}),
    ((1, 5, 4, 2), (3, 3, 2, 2), {"padding": "same", "strides": (2, 1)}),
    ((1, 5, 5, 1), (2, 2, 1, 2), {"dilations": (2, 3), "padding": ((1, 0), (2, 1))}),
    ((1, 4, 4, 2), (2, 2, 1, 4), {"groups": 2, "padding": 1, "strides": 2}),
    ((1, 4, 3, 4), (2, 2, 2, 2), {"groups": 2}),
    ((2, 3, 3, 2), (1, 1, 2, 3), {}),
]
SAMPLES = {
    **{
        f"conv {x} {w} {s}": (lambda x, w, s=s: gt.nn.conv(x, w, **s),
                              lambda x, w, s=s: loops(x, w, **s), [R(*x), R(*w)])
        for x, w, s in CONVOLUTIONS
    },
    "conv complex": (lambda x, w: gt.nn.conv1d(x, w), loops,
                     [R(1, 4, 2) + 1j * R(1, 4, 2), R(2, 2, 1) + 1j * R(2, 2, 1)]),
    "depthwise": (
        lambda x, w: gt.nn.depthwise_conv(x, w, padding="same"),
        lambda x, w: loops(x, w.reshape(2, 2, 1, 6), padding="same", groups=2),
        [R(1, 3, 4, 2), R(2, 2, 2, 3)],
    ),
}  # fmt: skip
ERRORS = [
    (lambda x: gt.nn.conv(x, R(2, 3, 1)), ValueError, r"conv.*\(1, 4, 2\).*2 channels"),
    (lambda x: gt.nn.conv(x, R(2, 2, 2, 1)), ValueError, r"conv.*the same rank"),
    (lambda x: gt.nn.conv2d(x, R(2, 2, 2)), ValueError, "conv2d.*2 spatial axes"),
    (lambda x: gt.nn.conv(x, R(2, 2)), ValueError, "conv.*at least one spatial axis"),
    (lambda x: gt.nn.conv(x, R(2, 1, 3), groups=2), ValueError, "conv.*3 filters.*2 groups"),
    (lambda x: gt.nn.conv(x, R(2, 2, 1), strides=0), ValueError, "conv.*strides.*positive"),
    (lambda x: gt.nn.conv(x, R(2, 2, 1), strides=1.5), TypeError, "conv.*strides.*1.5"),
    (lambda x: gt.nn.conv(x, R(2, 2, 1), padding="full"), ValueError, "conv.*padding.*'full'"),
    (lambda x: gt.nn.conv(x, R(2, 2, 1), padding=-1), ValueError, "conv.*padding.*-1"),
    (lambda x: gt.nn.conv_transpose(x, R(2, 2, 1)), ValueError, "conv_transpose.*do not fit"),
    (lambda x: gt.nn.max_pool(x, (2, 2)), ValueError, "max_pool.*windows.*1 positive"),
    (lambda x: gt.nn.max_pool(x > 0, 2), TypeError, "max_pool.*bool"),
    (lambda x: gt.nn.avg_pool(x[0], 2), ValueError, "avg_pool.*spatial"),
]

FAMILY = Family(
    samples=SAMPLES,
    errors=ERRORS,
    given=[R(1, 4, 2)],
    values={"rtol": 1e-12, "atol": 1e-13},
    runs={"rtol": 1e-12, "atol": 1e-13},
    sized=["depthwise"],
)
