"""``gradtape.export.to``: an exporter by name, from this package or from a plugin."""

from __future__ import annotations

import os
from typing import Any

from ..core.extend import registry


def to(
    format: str, fn: Any, *args: Any, path: str | os.PathLike[str] | None = None, **kwargs: Any
) -> Any:
    """Return a function in the format of another runtime, by the format's name.

    Parameters
    ----------
    format
        ``"onnx"``, ``"stablehlo"``, or the name that a plugin gives with the hook
        ``gradtape_exporters``.
    fn
        A function, a module, or a trace (``get_concrete_function``).
    args, kwargs
        The arguments to trace it for, as for ``get_concrete_function``, and options of the
        exporter, such as ``platforms`` of :func:`gradtape.export.stablehlo`.
    path
        The file to write. By default, none is written.

    Returns
    -------
    object
        What the exporter returns; bytes for gradtape's own.

    Raises
    ------
    UnknownName
        If no plugin provides the format; the message lists near names.
    PluginError
        If several plugins provide it, and none takes precedence.
    ExportError
        If an op cannot be exported. The message names the op.

    Examples
    --------
    >>> model = gt.export.to("onnx", lambda x: gt.sin(x) * x, gt.TensorSpec([None, 3]))
    >>> type(model)
    <class 'bytes'>
    """
    return registry().provided("exporter", format)(fn, *args, path=path, **kwargs)
