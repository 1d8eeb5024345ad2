"""The rows of ``compiled.py``: what is computed, in each library."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from rows import basics, models, science
from rows.made import Made

__all__ = ["ROWS", "Made", "Row"]


class Row(NamedTuple):
    """What is computed.

    Parameters
    ----------
    title
        What tables call it.
    make
        Makes it for a library; and how it runs: ``"eager"``, or else compiled.
    trained
        Whether results are weights after some steps of Adam.
    free
        Weights that have no influence on the loss: Adam turns their rounding errors into steps.
    """

    title: str
    make: Callable[[str, str], Made]
    trained: bool = True
    free: tuple[int, ...] = ()


def _network(inputs: int, *hidden: int, batch: int) -> Callable[[str, str], Made]:
    return partial(basics.network, inputs=inputs, hidden=hidden, batch=batch)


ROWS = {
    "chain": Row("100-op chain", basics.chain, False),
    # biases before a BatchNorm are free, and the key's bias before a softmax
    "small": Row(
        "MLP 64-128-10, BatchNorm, Adam, batch 32", _network(64, 128, batch=32), free=(1,)
    ),
    "mid": Row("MLP 784-256-256-10, batch 128", _network(784, 256, 256, batch=128), free=(1, 5)),
    "big": Row(
        "MLP 784-1024-1024-10, batch 256", _network(784, 1024, 1024, batch=256), free=(1, 5)
    ),
    "hessian": Row("Hessian of 40 parameters", basics.hessian, False),
    "jacobian": Row("batch Jacobian, 256 examples, 32 → 64 → 32", basics.batch_jacobian, False),
    "convolution": Row("convolutions 16-32, 28 by 28, batch 32", models.convolution),
    "lstm-loop": Row("LSTM of 64, Python loop of 30 steps, batch 32", models.lstm_loop),
    "lstm": Row("LSTM of 64, layer or scan, 30 steps, batch 32", models.lstm),
    "attention": Row(
        "attention block of 64, 4 heads, 128 tokens, batch 8", models.attention, free=(5,)
    ),
    "autoencoder": Row("VAE 784-256-20-256-784, batch 128", models.autoencoder),
    "equation": Row("PINN 2-32-32-1, third derivatives, 256 points", science.equation),
    "process": Row("Gaussian process, 200 points, 3 gradients", science.gaussian_process, False),
    "bodies": Row("32 bodies, 20 leapfrog steps, gradient", science.bodies, False),
    "matrices": Row("1,000 matrices of 4 by 4, gradient", science.small_matrices, False),
}
