"""``gradtape.export.onnx``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .errors import needed
from .tracing import traced


def onnx(fn: Any, *args: Any, path: str | os.PathLike[str] | None = None, **kwargs: Any) -> bytes:
    """Return a function as an ONNX model.

    Parameters
    ----------
    fn
        A function, a module, or a trace (``get_concrete_function``). It may compute gradients and
        assign variables, so a whole training step can be one model.
    args, kwargs
        The arguments to trace it for, as for ``get_concrete_function``: a
        :class:`gradtape.TensorSpec` or a tensor for each tensor. Unknown sizes stay unknown.
    path
        The file to write. By default, none is written.

    Returns
    -------
    bytes
        The model.

    Raises
    ------
    ExportError
        If an op cannot be exported to ONNX. The message names the op.
    BackendUnavailable
        If ndonnx is not installed. The message has the line that installs it.

    Notes
    -----
    Inputs have the names of the function's parameters. Outputs have the keys of the dict that it
    returns, or ``output``, ``output.0`` and so on. Variables are initializers, named by their
    paths. A variable that the function assigns is an input, and an output whose name ends with
    ``_next``; :func:`variables` returns its current value. Unknown sizes are 1 or more.

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
