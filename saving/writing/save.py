"""``save``: a module as one file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.extend import (
    SAVING,
    ConcreteFunction,
    Module,
    TensorSpec,
    as_group_of_one,
    default_dtype,
    flatten,
    hinted_arguments,
    init_scope,
    to_numpy,
    warn_user,
)
from ..container.storage import storage_of
from ..errors import SaveError
from ..records.formats import check_format, warn_of_name
from ..records.schema import FORMAT, MAX_TOKENS, VERSION, dump, tokens
from .collect import Numbers, Options, collect, number
from .encode import Encoded, encode
from .graphs import UNROLLED
from .running import keeping_state

#: What the root of every file says.
ATTRIBUTES = {"format": FORMAT, "format_version": ".".join(map(str, VERSION))}


@hinted_arguments(SAVING)
def save(
    module: Module,
    path: str | os.PathLike[str],
    signatures: Mapping[str, Callable[..., Any]] | None = None,
    *,
    golden: bool = True,
    custom_gradients: bool = True,
    sizes: str = "open",
    functions: bool = True,
    compression: str | None = None,
) -> None:
    """Save a module, with its variables, functions and custom gradients, to one file.

    Methods decorated with :func:`gradtape.function` are saved with all their traces. ``__call__``
    of a module that was called is traced for any batch size (with ``training`` on and off if it
    takes that). Custom gradients, and gradient rules of ops that were replaced in this process, are
    saved as graphs. The file needs none of the code that made them.

    Python state is saved too: plain values, arrays, tensors, ops, and lists, tuples, sets and
    dictionaries of them. One warning names everything that is not saved. In a copy loaded without
    the class, attributes that the functions have read are read-only.

    Before anything is written, every trace is compared with the Python code: outputs, gradients and
    the new values of variables. The inputs are random numbers, at batches of 1, 2 and 3 and at the
    size that was seen. A call that the Python code itself refuses is left out.

    Parameters
    ----------
    module
        The module to save.
    path
        The file. Its container is HDF5, or that of a plugin for the end of its name (see
        :class:`gradtape.saving.Storage`). It is replaced atomically: there is either the old file
        or the new one, never a part. A link stays a link, and permissions are kept; another hard
        link to the old file keeps the old contents.
    signatures
        Further functions by name, decorated with :func:`gradtape.function`; they are in the
        ``signatures`` of the loaded module.
    golden
        Compare the traces with the Python code (the default), and store sample inputs with their
        outputs and first and second gradients, for ``gradtape verify``. If false, do neither.
    custom_gradients
        Store custom gradients and replaced rules (the default). Without them a loaded function
        still gives its results, but a gradient through one of them raises ``LookupError``, and
        there are no samples of it.
    sizes
        ``"open"`` traces calls for any batch size (and for any size in which past calls differ).
        ``"seen"`` traces them only for the sizes of past calls, for Python code that must know
        them. The loaded module then refuses every other size.
    functions
        Trace and store the module's functions (the default). If false, the file has only the tree,
        its variables and its state, even for modules that were never called.
    compression
        ``"gzip"`` compresses arrays that become smaller, which makes saving and loading slower.

    Raises
    ------
    UntraceableGradient
        If a custom gradient or a replaced rule cannot be traced; the message names the function
        (the op) and its line.
    SaveError
        If something else cannot be saved. Examples are a module that was never called, code that
        cannot be traced for unknown sizes, a trace that differs from the Python code, and an object
        that holds variables where no module finds them. Also if the path has the ending of another
        format, such as ``.onnx``. The message has the line, and the file at ``path`` is unchanged.
    TypeError
        If ``signatures`` is no mapping.
    ValueError
        If ``sizes`` is neither ``"open"`` nor ``"seen"``, or ``compression`` is not known.

    Warns
    -----
    UserWarning
        If other programs use the ending of the path and cannot read the file, such as ``.keras``.
        Once for classes that say their name in files, but that no plugin provides. Once for Python
        state that the file does not hold, by path (``model.blocks[3].cache``). Once for variables
        or calls in ``float64``, NumPy's default, if the default dtype differs.

    Examples
    --------
    >>> import os, tempfile
    >>> model = gt.layers.Dense(2)
    >>> shape = model(gt.ones((1, 3))).shape
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.h5")
    ...     gt.save(model, path)
    ...     loaded = gt.load(path)
    >>> loaded.kernel.tolist() == model.kernel.tolist()
    True
    """
    if not isinstance(module, Module):
        instead = "assign what you want to save to an attribute of a Module"
        if isinstance(path, Module):
            instead = "the module comes first: gradtape.save(module, path)"
        raise SaveError(f"save: expected a gradtape.Module, got {type(module).__name__}; {instead}")
    if signatures is not None and not isinstance(signatures, Mapping):
        raise TypeError(
            "save: signatures must be a dictionary of names and functions, got "
            f"{type(signatures).__name__}; an example of the input is not needed"
        )
    if sizes not in ("open", "seen"):
        raise ValueError(f'save: sizes must be "open" or "seen", got {sizes!r}')
    storage = storage_of(path)
    if compression is not None and compression not in storage.compressions:
        known = " or ".join(["None", *map(repr, storage.compressions)])
        raise ValueError(
            f"save: compression must be {known}, got {compression!r}, in a file of {storage.name}"
        )
    check_format(path, "save")
    warn_of_name(path, "save")
    target = storage.target(path)  # before the work, in which a program may go to another folder
    # what a surrounding tape or trace has no business with; and calls made here leave no trace
    # and what this process computes here, it computes alone
    options = Options(golden, custom_gradients, sizes, functions)
    with as_group_of_one(), init_scope(), keeping_state((module, *module.submodules)):
        collected = collect(module, signatures or {}, options)
        numbers = number(collected)
        encoded = encode(collected, numbers)
        layout = lay_out(encoded, numbers)
    for text in (
        replaced_rules(collected.replaced),
        unprovided_classes(collected.unprovided),
        left_out(encoded.left_out),
        double_precision(module, encoded.traces),
    ):
        if text:
            warn_user(f"save: {text}", UserWarning)
    storage.save(target, ATTRIBUTES, layout.texts, layout.arrays, compression)


@dataclass(frozen=True)
class Layout:
    """The datasets of a file by path: texts, and arrays in their order in the file."""

    texts: dict[str, str]
    arrays: dict[str, np.ndarray[Any, Any]]


def lay_out(encoded: Encoded, numbers: Numbers) -> Layout:
    """Return the datasets of the records of a file and of its variables."""
    texts = {"/manifest": dump(encoded.manifest.json(), "the module tree"), **encoded.texts}
    total = sum(map(tokens, texts.values()))
    if total > MAX_TOKENS:
        raise SaveError(
            f"the graphs and the module tree have {total:,} tokens as JSON, more than readers "
            f"accept ({MAX_TOKENS:,}); {UNROLLED}"
        )
    arrays = {numbers.places[id(x)]: to_numpy(x.array) for x in numbers.variables}
    return Layout(texts, {**encoded.arrays, **arrays})


def left_out(places: Sequence[str]) -> str:
    """Return a warning about what a file does not hold."""
    if not places:
        return ""
    return (
        f"not saved: {'; '.join(places)}. Files hold numbers, strings, arrays, tensors, ops, "
        "variables, modules, and lists, tuples, sets and dictionaries of them"
    )


def unprovided_classes(found: Mapping[str, str]) -> str:
    """Return a warning about classes that say their name in files, but that no plugin provides."""
    if not found:
        return ""
    names = ", ".join(f"{cls} ({name!r})" for cls, name in found.items())
    return (
        f"no plugin provides {names}: what is loaded will be modules without these classes. "
        "Register a plugin whose gradtape_modules returns them (gradtape.register_plugin), or "
        "leave saved_as out"
    )


def replaced_rules(found: Sequence[tuple[str, str]]) -> str:
    """Return a warning about modules that run ops with replaced rules, each with such an op."""
    if not found:
        return ""
    ops = ", ".join(map(repr, sorted({op for _, op in found})))
    return (
        f"{_first([where for where, _ in found])}: gradients use rules that were replaced in this "
        f"process (of op {ops}, or of one that its rule uses); to be the same elsewhere, they are "
        "saved as their traces, and come back without the methods of their classes"
    )


def _first(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def double_precision(module: Module, traces: Iterable[ConcreteFunction]) -> str:
    """Return a warning about values that are float64 by accident, and how to cast them.

    Parameters
    ----------
    module
        The module to save.
    traces
        Its traces.
    """
    if default_dtype() != "float32":
        return ""
    advice = (
        'Cast it with x.astype("float32"); if float64 is intended, say so: dtype="float64" of a '
        'layer or of a variable, gradtape.set_default_dtype("float64")'
    )
    found = [
        f"{module.name}.{path.replace('/', '.')}"
        for path, x in module.named_variables.items()
        if x.unasked and x.trainable and x.dtype == "float64"
    ]
    if found:
        return (
            f"{_first(found)}: float64, NumPy's default, takes twice the memory and time of "
            f"float32. {advice}"
        )
    floats = [x for x in flatten(module.call_signatures()) if isinstance(x, TensorSpec)]
    kinds = {x.dtype.name for x in floats if x.dtype.kind == "f"}
    dtypes = {v.dtype.name for v in module.trainable_variables}
    if kinds == {"float64"} and dtypes == {"float32"} and any(map(_widens, traces)):
        return (
            f"{module.name} has float32 variables, but was only called with float64 data, NumPy's "
            f"default: it computes in float64. {advice}"
        )
    return ""


def _widens(trace: ConcreteFunction) -> bool:
    """Return whether a step of a trace makes float64."""
    return any(x.dtype == "float64" for node in trace.graph.nodes for x in node.outputs)
