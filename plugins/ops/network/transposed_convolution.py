"""Transposed convolutions, which enlarge images: the adjoints of convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....core.extend import F, Op, Tensor, as_batched, largest, sizes_differ
from ..common.axes import merged, split_first, with_examples
from ..common.kernels import as_like, in_float32
from ..common.op_builders import named, op
from ..shapes.joining import common_dtype
from .convolution import conv_settings, filters_gradient, images_of, prepared
from .windows import Padding, Sizes, of_rank, side_by_side, undo_side_by_side


def _enlarged(sizes: Sequence[Any], kernel: Sequence[Any], settings: dict[str, Any]) -> Any:
    """Return the spatial sizes of images whose convolution has the given sizes."""
    result: list[Any] = []
    for i, (n, k) in enumerate(zip(sizes, kernel, strict=True)):
        stride, dilation, padding = (settings[x] for x in ("strides", "dilations", "padding"))
        if n is None or (k is None and padding != "same"):
            result.append(None)
        elif padding == "same":
            result.append(n * stride[i])
        else:
            around = 0 if padding == "valid" else sum(padding[i])
            result.append(largest(0, (n - 1) * stride[i] + (k - 1) * dilation[i] + 1 - around))
    return tuple(result)


def transpose_shape(x: Any, w: Any, settings: dict[str, Any]) -> Any:
    """Return the shape of a transposed convolution; raise if images and filters do not fit."""
    if w is not None and len(w) != len(settings["strides"]) + 2:
        raise ValueError(
            f"conv_transpose: filters of shape {w} need {len(settings['strides'])} spatial axes, "
            "then output channels and input channels"
        )
    if x is None or w is None:
        return None
    if len(x) != len(w) or sizes_differ(x[-1], w[-1]):
        raise ValueError(
            f"conv_transpose: images of shape {x} do not fit filters of shape {w}: "
            "(batch, spatial axes, input channels) and "
            "(spatial axes, output channels, input channels)"
        )
    return (x[0], *_enlarged(x[1:-1], w[:-2], settings), w[-2])


@in_float32
def _transpose_kernel(
    xp: Any, x: Any, w: Any, *, strides: Sizes, padding: Padding, dilations: Sizes
) -> Any:
    settings = {"strides": strides, "padding": padding, "dilations": dilations}
    shape = transpose_shape(x.shape, w.shape, settings)
    return images_of(xp, x, w, shape, settings, 1)


@with_examples
def _conv_transpose_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``conv_transpose``: with batched filters, the adjoint of a convolution."""
    (x, w), (bx, bw) = xs, batched
    if not bw:
        return split_first(op.raw(merged(x, op), w, **params), x, op)
    x = x if bx else as_batched(x, w)
    size = w.shape[0]
    row = (0,)
    one = op.raw(F.getitem(x, index=row), F.getitem(w, index=row), **params)
    like = F.zeros_like(as_batched(one, w))
    sides = [side_by_side(part, op) for part in (x, w, like)]
    return undo_side_by_side(F.conv_to_images(*sides, **params, groups=size), size)


_conv_transpose = op(
    "conv_transpose",
    _transpose_kernel,
    gradients={
        "x": lambda g, w, x_like, strides, padding, dilations: as_like(
            F.conv(g, w, **conv_settings(strides, padding, dilations, 1)), x_like
        ),
        "w": lambda g, x, w_like, strides, padding, dilations: filters_gradient(
            x, g, w_like, conv_settings(strides, padding, dilations, 1)
        ),
    },
    infer=lambda x, w, **settings: (
        transpose_shape(x.shape, w.shape, settings),
        common_dtype((x, w)),
    ),
    holomorphic=True,
    batch=_conv_transpose_rule,
    floating=True,
    jvp="multilinear",
    doc="Enlarge images ``x``: the adjoint of a convolution with filters ``w``.",
)


@named
def conv_transpose(
    x: Any, filters: Any, strides: Any = 1, padding: Any = "valid", dilations: Any = 1
) -> Tensor:
    """Return a transposed convolution, which enlarges images: the adjoint of :func:`conv`.

    Parameters
    ----------
    x
        Images ``(batch, *spatial, channels)``, of any numeric dtype.
    filters
        Of shape ``(*window, filters, channels)``: those of the convolution in the other direction.
    strides, padding, dilations
        Those of the convolution in the other direction; 1, ``"valid"`` and 1 by default. With
        ``"same"``, sizes are multiplied by the stride.

    Returns
    -------
    A tensor of shape ``(batch, *larger, filters)`` and the promoted dtype.

    Raises
    ------
    TypeError
        If a setting is neither an integer nor a sequence of integers.
    ValueError
        If shapes, channels or settings do not fit.

    References
    ----------
    Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", 2016, chapter 4.

    Examples
    --------
    >>> x = gt.constant([[[1.0], [2.0]]])
    >>> gt.nn.conv_transpose(x, gt.ones((2, 1, 1)), strides=2)[0, :, 0].tolist()
    [1.0, 1.0, 2.0, 2.0]
    """
    w, settings = prepared("conv_transpose", filters, None, strides, padding, dilations)
    return _conv_transpose(x, w, **settings)


@named
def conv1d_transpose(
    x: Any, filters: Any, strides: Any = 1, padding: Any = "valid", dilations: Any = 1
) -> Tensor:
    """Return the transposed convolution of ``(batch, size, channels)``.

    Parameters
    ----------
    x
        Floating or complex images ``(batch, size, channels)``.
    filters
        Of shape ``(size, filters, channels)``: those of the convolution in the other direction.
    strides, dilations
        As for :func:`gradtape.nn.conv_transpose`: a number, 1 by default.
    padding
        As for :func:`gradtape.nn.conv_transpose`, ``"valid"`` by default.

    Returns
    -------
    A tensor of shape ``(batch, larger size, filters)`` and the promoted dtype.

    Raises
    ------
    TypeError
        If a setting is neither an integer nor a sequence of integers.
    ValueError
        If the images do not have 3 axes, or shapes, channels or settings do not fit.

    See Also
    --------
    gradtape.nn.conv_transpose : For any number of spatial axes.

    Examples
    --------
    >>> x = gt.constant([[[1.0], [2.0]]])
    >>> gt.nn.conv1d_transpose(x, gt.ones((2, 1, 1)), strides=2)[0, :, 0].tolist()
    [1.0, 1.0, 2.0, 2.0]
    """
    images = of_rank(x, 3, "conv1d_transpose")
    return conv_transpose(images, filters, strides, padding, dilations)


@named
def conv2d_transpose(
    x: Any, filters: Any, strides: Any = 1, padding: Any = "valid", dilations: Any = 1
) -> Tensor:
    """Return the transposed convolution of ``(batch, height, width, channels)``.

    Parameters
    ----------
    x
        Floating or complex images ``(batch, height, width, channels)``.
    filters
        Of shape ``(height, width, filters, channels)``: those of the convolution in the other
        direction.
    strides, dilations
        As for :func:`gradtape.nn.conv_transpose`: a number, or one per spatial axis, 1 by default.
    padding
        As for :func:`gradtape.nn.conv_transpose`, ``"valid"`` by default.

    Returns
    -------
    A tensor of shape ``(batch, larger height, larger width, filters)`` and the promoted dtype.

    Raises
    ------
    TypeError
        If a setting is neither an integer nor a sequence of integers.
    ValueError
        If the images do not have 4 axes, or shapes, channels or settings do not fit.

    See Also
    --------
    gradtape.nn.conv_transpose : For any number of spatial axes.

    Examples
    --------
    >>> x, filters = gt.ones((1, 2, 2, 1)), gt.ones((2, 2, 3, 1))
    >>> gt.nn.conv2d_transpose(x, filters, strides=2).shape
    (1, 4, 4, 3)
    """
    images = of_rank(x, 4, "conv2d_transpose")
    return conv_transpose(images, filters, strides, padding, dilations)
