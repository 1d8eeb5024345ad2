"""What a backend promises besides ops: that arrays are copies of its own, and updates are right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import gradtape

from ..core.extend import Backend, backend_of
from ..core.extend import backend as selected

__all__ = ["broken_promises"]


def broken_promises(backend: Backend, name: str) -> Iterator[tuple[str, str]]:
    """Yield the methods of a backend that do not do what they must, each with what is wrong.

    Parameters
    ----------
    backend
        The backend.
    name
        Its name, with a device if that is not the default one.
    """
    checks: dict[str, Callable[[Backend, str], str]] = {
        "asarray": _asarray,
        "device": _device,
        "updating": _updating,
    }
    for method, check in checks.items():
        try:
            told = check(backend, name)
        except Exception:  # what the library lacks: samples of ops tell it
            continue
        if told:
            yield method, told


def _made(backend: Backend, name: str, value: Any) -> Any:
    return backend.asarray(value, dtype=value.dtype, device=name.partition(":")[2] or None)


def _asarray(backend: Backend, name: str) -> str:
    value = np.array([1.0, 2.0], np.float32)
    made = _made(backend, name, value)
    if not hasattr(made, "dtype"):
        return f"it returned {made!r:.80}, not an array"
    if backend_of(made) is not backend:
        return f"it returned {type(made).__name__}, which is not an array of the backend"
    found = backend.to_numpy(made).tolist()
    if found != [1.0, 2.0]:
        return f"to_numpy gave {found} of [1.0, 2.0]"
    value[0] = 3.0
    if backend.to_numpy(made)[0] != 1.0:
        return "it made no copy: the result changed with the array that it was made from"
    return ""


def _device(backend: Backend, name: str) -> str:
    found = backend.device(_made(backend, name, np.zeros(2, np.float32)))
    return "" if isinstance(found, str) else f"it returned {found!r:.80}, not a text"


def _updating(backend: Backend, name: str) -> str:
    for make in (
        lambda: gradtape.training.SGD(0.5, momentum=0.5),
        lambda: gradtape.training.Adam(0.1),
    ):
        got, want = _trained(make(), name), _trained(make(), "numpy")
        if not np.allclose(got, want, rtol=1e-5, atol=1e-6):
            kind = type(make()).__name__
            return f"two steps of {kind} gave {got.tolist()} instead of {want.tolist()}"
    return ""


def _trained(optimizer: Any, name: str) -> Any:
    """Return two variables after two steps."""
    with selected(name):
        variables = [gradtape.Variable(np.array(x, np.float32)) for x in ([1.0, -2.0], [3.0])]
        for factor in (1.0, 0.5):
            values = (factor * np.array(x, np.float32) for x in ([1.0, 2.0], [-1.0]))
            gradients = [gradtape.constant(x.astype(np.float32)) for x in values]
            optimizer.apply_gradients(list(zip(gradients, variables, strict=True)))
    return np.concatenate([v.value.to("numpy").numpy() for v in variables])
