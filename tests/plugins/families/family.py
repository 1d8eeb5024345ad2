"""What a family of ops contributes to the tables of tests/plugins/test_families.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np
from samples import Sample

import gradtape as gt

__all__ = ["Family", "each"]


@dataclass(frozen=True)
class Family:
    """A family's rows.

    Attributes
    ----------
    samples
        By name: our function, NumPy's or the definition, and the inputs.
    errors
        A wrong call, the error, and words of its message.
    given
        The arrays that wrong calls are given.
    values
        Tolerances of values against NumPy's.
    smooth
        The samples to differentiate; those in ``samples`` if nothing else is said.
    squared
        Whether to square results before, since the second order would be zero.
    traces
        A name, a sample, and what its trace does not know: see ``samples.check_traces``.
    runs
        Tolerances of traces that hold gradients too, if the samples are to be run in such.
    sized
        The names of samples that must know their sizes there.
    dtypes
        A name, a sample, and dtypes to be treated as by NumPy: see ``samples.check_dtypes``.
    precisions
        Floating dtypes that samples keep, gradients too.
    mixed
        The names of samples that hold arrays of double precision, which wins.
    kernels
        An op's name, arrays and parameters that its kernel takes from any array API library.
    """

    samples: Mapping[str, Sample] = field(default_factory=dict)
    errors: Sequence[tuple[Callable[..., Any], type[Exception], str]] = ()
    given: Sequence[Any] = ()
    values: Mapping[str, float] = field(default_factory=dict)
    smooth: Mapping[str, Sample] | None = None
    squared: bool = False
    traces: Sequence[tuple[str, Sample, str]] = ()
    runs: Mapping[str, float] | None = None
    sized: Sequence[str] = ()
    dtypes: Sequence[tuple[str, Sample, Sequence[str]]] = ()
    precisions: Sequence[str] = ()
    mixed: Sequence[str] = ()
    kernels: Sequence[tuple[str, Sequence[Any], Mapping[str, Any]]] = ()


def each(name: str, *args: Any, **kwargs: Any) -> list[Callable[..., Any]]:
    """Return the same call of our function and of NumPy's, arrays first."""
    find = attrgetter(name)
    return [lambda *xs, module=module: find(module)(*xs, *args, **kwargs) for module in (gt, np)]
