"""Dropout: a random share of elements set to 0."""

from __future__ import annotations

from typing import Any

from ....core.extend import Tensor, as_tensor, ops
from ..common.op_builders import named
from ..random.functions import shared


@named
def dropout(x: Any, rate: float, generator: Any = None, training: bool = True) -> Tensor:
    """Return ``x`` with a random share of elements set to 0, and the others scaled up.

    Parameters
    ----------
    x
        A floating tensor of any shape.
    rate
        The share to drop, from 0 up to 1. The others are divided by ``1 - rate``, so that the
        expected value stays the same.
    generator
        A :class:`gradtape.random.Generator`; the shared one if not given.
    training
        Return ``x`` unchanged if false; true by default.

    Returns
    -------
    A tensor of the shape and dtype of ``x``.

    Raises
    ------
    TypeError
        If ``x`` is not floating.
    ValueError
        If the rate is not at least 0 and below 1.

    References
    ----------
    Srivastava, Hinton, Krizhevsky, Sutskever and Salakhutdinov, "Dropout: a simple way to prevent
    neural networks from overfitting", 2014.

    Examples
    --------
    >>> y = gt.nn.dropout(gt.ones(1000), 0.5, gt.random.Generator(0))
    >>> gt.unique(y).tolist()
    [0.0, 2.0]
    >>> gt.nn.dropout([1.0, 2.0], 0.5, training=False).tolist()
    [1.0, 2.0]
    """
    if not 0 <= rate < 1:
        raise ValueError(f"dropout: rate must be at least 0 and below 1, got {rate!r}")
    x = as_tensor(x)
    if not training or rate == 0:
        return x
    if generator is None:
        generator = shared()
    if not hasattr(generator, "uniform_like"):
        raise TypeError(
            f"dropout: generator must be a gradtape.random.Generator, got {generator!r}; give "
            "training by name"
        )
    kept = ops["greater_equal"](generator.uniform_like(x), rate)
    return ops["where"](kept, x / (1.0 - rate), 0.0)
