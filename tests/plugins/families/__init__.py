"""The families of ops, each with its samples, wrong calls and kernels, for tables of tests."""

from __future__ import annotations

from . import (
    calculus,
    convolution,
    factorizations,
    fft,
    linalg,
    network_kernels,
    network_losses,
    nn,
    selection,
    shape,
    statistics,
    updates,
)

__all__ = ["FAMILIES"]

FAMILIES = {
    module.__name__.rpartition(".")[2]: module.FAMILY
    for module in (
        calculus,
        convolution,
        factorizations,
        fft,
        linalg,
        network_kernels,
        network_losses,
        nn,
        selection,
        shape,
        statistics,
        updates,
    )
}
