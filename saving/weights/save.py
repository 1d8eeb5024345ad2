"""``save_weights``: the variables of a model, and nothing else."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ...core.extend import (
    SAVING,
    Module,
    Stream,
    Variable,
    hinted_arguments,
    is_unbuilt,
    warn_of_hidden,
    warn_user,
)
from ..errors import SaveError
from ..records.formats import check_format, writer_of
from ..records.held import tracks
from ..records.loaded import LoadedModule, is_ordered
from ..writing.save import save
from .layouts import OWN, RESTORE, Features, Layout, layouts
from .names import Names, WeightSlot, differing

_ALONE = "the file holds weights alone"


@hinted_arguments(SAVING)
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
        for ``load_state_dict(safetensors.torch.load_file(path))``. Variables of your own classes
        have the same names there as here, unless the class defines ``names_elsewhere``.

    Raises
    ------
    SaveError
        If a layer has no weights yet, because it was never called, the path has the ending of a
        format that is not written (``.pt``), or the file cannot be written. Also if two variables
        would have one name, PyTorch has no layer that computes the same, or a function in
        ``names_elsewhere`` of a class fails. The old file is then unchanged.
    TypeError
        If ``names_elsewhere`` of a class has a wrong form.
    ValueError
        If ``layout`` is unknown, or not available for the format.

    Warns
    -----
    UserWarning
        If an object that modules do not search (a set, a plain object) holds variables, which are
        then not in the file. If PyTorch has no such layer, or ``names_elsewhere`` names a missing
        attribute, so that names and axes are ours. If a setting that the file does not hold has
        another default there.

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
    if layout not in (known := layouts(written=True)):
        listed = " or ".join(f'"{name}"' for name in known)
        raise ValueError(
            f"save_weights: layout must be {listed}, got {layout!r}; if the plugin of that layout "
            f"is missing, {RESTORE}"
        )
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
            arrays, metadata = _arrays_of(model, known[layout])
            write(arrays, metadata)
        else:
            _check_distinct(path for path, _ in model.named_leaves())
            save(_tree(model, {}), path, golden=False)
    except RecursionError:
        raise SaveError(
            f"save_weights: the parts of {model.name!r} are nested too deeply to be saved"
        ) from None


def _modules(model: Module) -> Iterator[tuple[str, Module]]:
    return ((path, leaf) for path, leaf in model.named_leaves() if isinstance(leaf, Module))


def _arrays_of(model: Module, layout: Layout) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a model's arrays by name, and what a file says about them."""
    arrays: dict[str, Any] = {}
    metadata = {"format": layout.stated}
    names = Names(model, layout)
    kernels = [x.variable for x in names.slots if x.variable is not None and x.of_images()]
    features = layout.features(model, kernels)
    tensors = _for_us(names) if layout is OWN else _for_others(names, features)
    taken: list[str] = []
    for places, value in tensors:
        name, *others = dict.fromkeys(places)
        arrays[name] = value
        metadata.update(dict.fromkeys(others, name))
        taken += [name, *others]
    _check_distinct(taken)
    if layout.names_every_class:
        _warn(names, features)
    return arrays, metadata


def _check_distinct(names: Iterable[str]) -> None:
    """Refuse names that two variables or modules have, of which a file would hold only one."""
    for name, count in Counter(names).items():
        if count > 1:
            raise SaveError(
                f"save_weights: two variables or modules have the name {name!r}, and a file could "
                "not tell them apart; rename an attribute or a key (1 and '1' are one name)"
            )


def _for_us(names: Names) -> Iterator[tuple[list[str], Any]]:
    for slot in names.slots:
        if slot.variable is not None:
            yield slot.paths, np.asarray(slot.variable.numpy())


def _for_others(names: Names, features: Features) -> Iterator[tuple[list[str], Any]]:
    """Yield arrays of another framework, with their names.

    Raises
    ------
    SaveError
        If it has no layer that computes the same.
    """
    done: set[WeightSlot] = set()
    for joint in names.joints:
        variables = [slot.variable for slot in joint.slots]
        if done.intersection(joint.slots) or None in variables:
            continue
        own = [
            features.to_torch_order(v, np.asarray(v.numpy())) for v in variables if v is not None
        ]
        values = _saved(joint.save, names, joint.slots[0], joint.module, own)
        if values is None:  # the next one may apply
            continue
        done.update(joint.slots)
        given, listed = len(values), len(joint.elsewhere[0])
        if given != listed:
            raise SaveError(
                f"save_weights: {type(joint.module).__name__} names {listed} arrays of "
                f"{names.layout.label} for "
                f"{', '.join(slot.attribute for slot in joint.slots)} in names_elsewhere, and its "
                f"function returned {given}; return one for each name"
            )
        for i, value in enumerate(values):
            places = [each[i].replace("/", ".") for each in joint.elsewhere]
            yield places, value
    for slot in names.slots:
        variable = slot.variable
        if slot in done or slot.state == "absent" or variable is None:
            continue
        if isinstance(variable, Stream):  # a random state, which is no weight elsewhere
            continue
        value = features.to_torch_order(variable, np.asarray(variable.numpy()))
        if slot.convert is not None:
            value = _saved(slot.convert[1], names, slot, slot.module, value)
        elif slot.axes is not None:
            value = value.transpose(np.argsort(slot.axes))
        yield [name.replace("/", ".") for name in slot.elsewhere], value


def _saved(convert: Any, names: Names, slot: WeightSlot, module: Module, value: Any) -> Any:
    try:
        return convert(module, value)
    except ValueError as error:
        raise SaveError(
            f"save_weights: {slot.path} of {type(module).__name__} "
            f"{names.path_of(module) or module.name!r} has no form in {names.layout.label}: "
            f"{error}"
        ) from None
    except Exception as error:
        raise SaveError(
            f"save_weights: {type(module).__name__} cannot convert {slot.path}: its function in "
            f"names_elsewhere raised {type(error).__name__}: {error}"
        ) from error


def _has_unnamed_weights(kind: type[Module]) -> bool:
    """Return whether a class makes weights in its ``build``, and no names of them elsewhere.

    Variables that modules keep as attributes have the names that their class gives them.
    """
    first = {
        name: next((i for i, c in enumerate(kind.__mro__) if name in vars(c)), len(kind.__mro__))
        for name in ("build", "names_elsewhere")
    }
    return first["build"] < first["names_elsewhere"]


def _warn(names: Names, features: Features) -> None:
    """Warn about layers that the framework lacks, and about settings that the file lacks."""
    layout, unknown = names.layout, {}
    for slot in names.slots:
        kind = type(slot.module)
        if not slot.state and not isinstance(slot.variable, Stream) and _has_unnamed_weights(kind):
            unknown[names.path_of(slot.module) or slot.module.name] = kind.__name__
    if unknown:
        listed = ", ".join(f"{path} ({kind})" for path, kind in unknown.items())
        warn_user(
            f"save_weights: {layout.label}'s names are not known for {listed}, whose weights have "
            "their own names and axes in the file; define names_elsewhere in a class: "
            f'{{"{layout.name}": {{}}}} if they are the same there',
            UserWarning,
        )
    doubtful = [slot.path for slot in names.slots if id(slot.variable) in features.unsure]
    if doubts := layout.in_doubt(doubtful):
        warn_user(f"save_weights: {doubts}", UserWarning)
    for text in dict.fromkeys(names.dropped()):
        warn_user(
            f"save_weights: {text}; the others have their own names and axes in the file",
            UserWarning,
        )
    for text in dict.fromkeys(differing((slot.module for slot in names.slots), layout)):
        warn_user(f"save_weights: {text}", UserWarning)


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
