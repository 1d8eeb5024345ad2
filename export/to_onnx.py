"""``gradtape.export.onnx``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .errors import needed
from .tracing import traced

__all__ = ["onnx"]


def onnx(fn: Any, *args: Any, path: str | os.PathLike[str] | None = None, **kwargs: Any) -> bytes:
    """Return a function as an ONNX model.

    Parameters
    ----------
    fn
        A function, a module, or a trace (``get_concrete_function``). It may compute gradients, and
        assign variables: a whole training step is one model.
    args, kwargs
        What it is traced for, as for ``get_concrete_function``: a :class:`gradtape.TensorSpec` or
        a tensor for each tensor. A size that is open stays open.
    path
        Where to write the model.

    Returns
    -------
    bytes
        The model.

    Raises
    ------
    ExportError
        If an op has no form in ONNX, with the op's name.
    BackendUnavailable
        If ndonnx is not installed, with the line that installs it.

    Notes
    -----
    Inputs have the names of the function's parameters; outputs the keys of the dict that it
    returns, or ``output``, ``output.0`` and so on. Variables are initializers, named by their
    paths. One that the function assigns is an input, and an output with ``_next`` at its end;
    :func:`variables` gives its value of today. Sizes that are open are 1 or more.

    Examples
    --------
    >>> model = gt.export.onnx(lambda x: gt.sin(x) * x, gt.TensorSpec([None, 3]))
    >>> type(model)
    <class 'bytes'>
    """
    needed("ndonnx", "onnx", "onnx")
    from .onnx_build import model_of

    blob: bytes = model_of(traced(fn, args, kwargs)).SerializeToString()
    if path is not None:
        Path(path).write_bytes(blob)
    return blob
