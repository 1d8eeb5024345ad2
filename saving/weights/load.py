"""``load_weights``: the arrays of a file into the variables of an existing model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core.extend import LOADING_WEIGHTS, Module, active_graph, hinted_arguments
from ..container.limits import MAX_BYTES
from .arrays import Arrays, of_arrays
from .formats import open_arrays
from .layouts import RESTORE, layouts
from .mapping import NameMapping, rename
from .plan import LoadPlan
from .report import WeightsReport


@hinted_arguments(LOADING_WEIGHTS)
def load_weights(
    path: str | os.PathLike[str] | Mapping[str, Any],
    model: Module,
    *,
    mapping: NameMapping = None,
    layout: str | None = None,
    strict: bool = True,
    max_bytes: int | None = None,
) -> WeightsReport:
    """Load weights into the variables of a model.

    The file may be one of gradtape (its graphs are not read, and no plugin is needed), a
    safetensors file, one of Keras (``.weights.h5``, ``.keras``, ``.h5``), or of a format that a
    plugin reads (hook ``gradtape_formats``). Its content decides; its name decides only for formats
    of plugins that do not look at the content. Nothing in it is executed, and pickles are refused.
    Either everything is loaded, or the model stays unchanged.

    Parameters
    ----------
    path
        The file, or a dictionary of arrays by name.
    model
        The model. Layers that are not built yet are built if their class supports that (``Dense``,
        ``BatchNorm``). For other layers, the arrays wait for the first call.
    mapping
        Maps names in the file to names in the model. A dictionary: keys are names, or parts of the
        file with everything in them. Or pairs of a regular expression and a replacement
        (:func:`re.sub`), applied one after another; or a function of a name. A name becomes a path
        of the model (``"layers/0/kernel"``), or the file's framework's name for it; ``None`` leaves
        it out, and a variable of this name in the model keeps its value. Dictionaries and functions
        may give a pair of a name and the order of axes as in :func:`numpy.transpose`; nothing else
        of such an array is reordered. Names that are not mapped stay the same. Those of a
        checkpoint's model are names of the model, with or without ``model/`` in front.
    layout
        The framework of the file's names and axes: ``"gradtape"``, ``"keras"`` or ``"pytorch"``,
        whose matrices are transposed and whose names are ``weight``, ``running_mean``, ... By
        default, a name that is a path of the model means that variable, with its axes. Arrays are
        PyTorch's if the file says so, or if their names are those of the model in PyTorch.
    strict
        Whether all variables must be in the file, and all arrays in the model. If false, whatever
        fits is loaded, and a warning lists the rest. Random states (of ``Dropout``) are always
        optional.
    max_bytes
        The maximum memory of the arrays together (8 GiB by default).

    Returns
    -------
    WeightsReport
        What happened to each array and variable; printed, it is a table.

    Raises
    ------
    WeightsMismatch
        If names, shapes or dtypes do not fit, with the complete list, and the report in ``report``;
        if not strict, only if nothing fits. The model is then unchanged.
    ValueError
        If two names of the file lead to one variable, or one name to two. Also if the mapping has a
        key or an expression that matches nothing.
    LoadError
        If the file cannot be read, or its kind is not supported; the message names the kind if it
        is known. Also if a function in ``names_elsewhere`` of a class fails.
    TypeError
        If ``model`` is not a module, ``path`` is neither a path nor a dictionary of arrays, the
        mapping is of another kind, or ``names_elsewhere`` of a
        class has a wrong form.
    RuntimeError
        If it is called while a function is traced.

    Warns
    -----
    UserWarning
        If something was not loaded, or if the frameworks differ in defaults of a layer's settings,
        which such files do not hold.

    Notes
    -----
    Values are converted to the dtype of the variable within a kind of numbers, as in
    :meth:`Variable.assign`; a number that becomes infinite is an error. Whether variables are
    trainable does not change, and neither do optimizers outside ``model``.

    Examples
    --------
    >>> import os, tempfile
    >>> trained = gt.layers.Dense(2)
    >>> shape = trained(gt.ones((1, 3))).shape
    >>> model = gt.layers.Dense(2, activation="relu")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "trained.h5")
    ...     gt.save_weights(trained, path)
    ...     report = gt.load_weights(path, model)
    >>> print(report.counts())
    2 loaded
    >>> model.kernel.tolist() == trained.kernel.tolist()
    True
    """
    if not isinstance(model, Module):
        swapped = "; the path comes first: load_weights(path, model)"
        raise TypeError(
            f"load_weights: expected a path and a gradtape.Module, got {type(path).__name__} and "
            f"{type(model).__name__}{swapped if isinstance(path, Module) else ''}"
        )
    known = layouts()
    if layout is not None and layout not in known:
        raise ValueError(
            f"load_weights: layout must be one of {', '.join(known)}, got {layout!r}; if the "
            f"plugin of that layout is missing, {RESTORE}"
        )
    if active_graph.get() is not None:
        raise RuntimeError("load_weights: call it outside traced functions")
    with _opened(path, max_bytes) as arrays:
        if layout is None and arrays.layout in known and known[arrays.layout].is_sure:
            layout = arrays.layout
        if arrays.is_checkpoint:
            arrays = _part(arrays, mapping)
        plan = LoadPlan(model, arrays, mapping, layout, strict)
        report = plan.carry_out()
    plan.warn()
    return report


def read_weights(
    path: str | os.PathLike[str], *, max_bytes: int | None = None
) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of a weights file by name.

    Parameters
    ----------
    path
        A file of any kind that :func:`gradtape.load_weights` takes. Use this for weights that must
        be cut, joined or changed; ``load_weights`` takes the result.
    max_bytes
        The most that the arrays may take in memory together (8 GiB by default).

    Returns
    -------
    dict
        NumPy arrays; bfloat16 and float8 as ``float32``, which represents them exactly.

    Raises
    ------
    LoadError
        If the file cannot be read.

    Examples
    --------
    >>> import os, tempfile
    >>> layer = gt.layers.Dense(2)
    >>> shape = layer(gt.ones((1, 3))).shape
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "layer.safetensors")
    ...     gt.save_weights(layer, path)
    ...     arrays = gt.saving.read_weights(path)
    >>> {name: array.shape for name, array in arrays.items()}
    {'bias': (2,), 'kernel': (3, 2)}
    """
    with _opened(path, max_bytes) as arrays:
        return arrays.read(sorted(arrays.entries))


def _part(arrays: Arrays, mapping: NameMapping) -> Arrays:
    """Return the model of a checkpoint, or all of it if the mapping has names of all of it."""
    part = arrays.of_model()
    try:
        rename([*part.entries, *part.aliases], mapping)
    except ValueError:
        return arrays
    return part


def _opened(path: Any, max_bytes: int | None) -> Arrays:
    if isinstance(path, Mapping):
        return of_arrays(path)
    _check_path(path)
    return open_arrays(path, MAX_BYTES if max_bytes is None else int(max_bytes))


def _check_path(path: Any) -> None:
    """Raise ``TypeError`` if this is neither a path nor the bytes of a file."""
    if not isinstance(path, (str, bytes, bytearray, memoryview, os.PathLike)):
        of_torch = callable(getattr(path, "state_dict", None)) or (
            getattr(path, "__name__", "") == "state_dict"
        )
        advice = "; pass what its state_dict() returns" if of_torch else ""
        raise TypeError(
            "load_weights: expected a path or a dictionary of arrays, got "
            f"{type(path).__name__}{advice}"
        )
