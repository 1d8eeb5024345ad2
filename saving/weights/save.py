"""``save_weights``: the variables of a model, and nothing else."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ...core.extend import Module, Stream, Variable, warn_of_hidden
from ..errors import SaveError
from ..records.formats import check_format, writer_of
from ..records.loaded import LoadedModule, is_ordered, tracks
from ..writing.save import save
from .names import LAYOUTS, Names, is_unbuilt

__all__ = ["save_weights"]

_ALONE = "the file holds weights alone"


def save_weights(model: Module, path: str | os.PathLike[str], *, layout: str = "gradtape") -> None:
    """Save the variables of a model, without its functions and settings.

    A path that ends with ``.safetensors`` becomes a file of that format, and so does one of a
    format that a plugin writes (hook ``gradtape_formats``). Any other becomes a file of gradtape,
    which :func:`gradtape.load` opens as a tree of variables without methods.

    Parameters
    ----------
    model
        The model.
    path
        The file. It is replaced atomically: there is either the old file or the new one, never a
        part.
    layout
        ``"pytorch"`` gives a safetensors file the names and axes of PyTorch's state dictionaries,
        for ``load_state_dict(safetensors.torch.load_file(path))``.

    Raises
    ------
    SaveError
        If a layer has no weights yet, because it was never called, the path has the ending of a
        format that is not written (``.pt``), or the file cannot be written. The old file is then
        unchanged.
    ValueError
        If ``layout`` is unknown, or not available for the format.

    Warns
    -----
    UserWarning
        If an object that modules do not search (a set, a plain object) holds variables, which are
        then not in the file.

    Examples
    --------
    >>> import os, tempfile
    >>> layer = gt.layers.Dense(2)
    >>> shape = layer(gt.ones((1, 3))).shape
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "layer.h5")
    ...     gt.save_weights(layer, path)
    ...     found = gt.load(path)
    >>> list(found.named_variables)
    ['kernel', 'bias']
    """
    if not isinstance(model, Module):
        swapped = "; the model comes first: save_weights(model, path)"
        raise SaveError(
            f"save_weights: expected a gradtape.Module and a path, got {type(model).__name__}"
            f"{swapped if isinstance(path, Module) else ''}"
        )
    write = writer_of(path)
    if layout not in LAYOUTS or layout == "keras":
        raise ValueError(f'save_weights: layout must be "gradtape" or "pytorch", got {layout!r}')
    if write is None:
        check_format(path, "save_weights")
    if layout != "gradtape" and write is None:
        raise ValueError(f"save_weights: {layout!r} is for paths that end with .safetensors")
    for part, module in [("", model), *_modules(model)]:
        names = getattr(module, "weight_names", ())
        alone = not any(isinstance(leaf, Module) for _, leaf in module.own_leaves())
        if is_unbuilt(module) and (names or (names is None and alone)):
            raise SaveError(
                f"save_weights: layer {part or module.name!r} ({type(module).__name__}) has no "
                "weights yet; call the model first"
            )
    warn_of_hidden(model, "save_weights")
    try:
        if write is not None:
            write(os.fsdecode(path), *_arrays_of(model, layout))
        else:
            _check_apart(path for path, _ in model.named_leaves())
            save(_tree(model, {}), path, golden=False)
    except RecursionError:
        raise SaveError(
            f"save_weights: the parts of {model.name!r} are nested too deeply to be saved"
        ) from None


def _modules(model: Module) -> Iterator[tuple[str, Module]]:
    return ((path, leaf) for path, leaf in model.named_leaves() if isinstance(leaf, Module))


def _arrays_of(model: Module, layout: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a model's arrays by name, and what a file says about them."""
    arrays, metadata = {}, {"format": "pt" if layout == "pytorch" else "gradtape"}
    taken: list[str] = []
    for slot in Names(model, layout).slots:
        variable, names = slot.variable, slot.paths
        if layout == "pytorch":
            if isinstance(variable, Stream):  # a random state, of which PyTorch has none
                continue
            names = [name.replace("/", ".") for name in slot.elsewhere]
        if variable is None:
            continue
        value = np.asarray(variable.numpy())
        arrays[names[0]] = value if slot.axes is None else value.transpose(np.argsort(slot.axes))
        metadata.update(dict.fromkeys(names[1:], names[0]))
        taken += dict.fromkeys(names)
    _check_apart(taken)
    return arrays, metadata


def _check_apart(names: Iterable[str]) -> None:
    """Refuse names that two variables or modules have, of which a file would hold only one."""
    for name, count in Counter(names).items():
        if count > 1:
            raise SaveError(
                f"save_weights: two variables or modules have the name {name!r}, and a file could "
                "not tell them apart; rename an attribute or a key (1 and '1' are one name)"
            )


def _tree(module: Module, made: dict[int, LoadedModule]) -> LoadedModule:
    """Return a module without a class, with the variables and parts of another, and what trains."""
    found = made.get(id(module))
    if found is None:
        name = module.class_name if isinstance(module, LoadedModule) else type(module).__name__
        found = LoadedModule(module.name, name, {"__call__": _ALONE}, is_ordered(module))
        made[id(module)] = found
        for attribute, value in vars(module).items():
            keep = attribute in ("_gradtape_trainable", "_gradtape_frozen")
            if keep or (not attribute.startswith("_gradtape") and tracks(value)):
                vars(found)[attribute] = value if keep else _parts(value, made)
    return found


def _parts(value: Any, made: dict[int, LoadedModule]) -> Any:
    """Return variables and modules in the same containers; other contents become None."""
    if isinstance(value, Module):
        return _tree(value, made)
    if isinstance(value, (list, tuple)):
        items = [_parts(item, made) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        return {key: _parts(item, made) for key, item in value.items() if tracks(item)}
    return value if isinstance(value, Variable) else None
