"""Keras weights: HDF5 files, alone (``.weights.h5``, ``.h5``) or in a zip (``.keras``).

Such files need the HDF5 library and are untrusted. A separate process reads them, within limits,
and writes their arrays to a safetensors file (see :mod:`.conversion`).
"""

from __future__ import annotations

import re
from collections import Counter

from ..container.legacy import converted
from ..container.source import Source
from ..errors import LoadError
from .arrays import Arrays, Entry
from .tensors import open_tensors

__all__ = ["open_keras"]

# Found by its name: it needs the HDF5 library, which is for the other process alone.
_CONVERTER = f"{__package__}.conversion"
# What belongs to training, or to the random numbers of a layer.
_NO_WEIGHTS = (
    (re.compile(r"(optimizer|_optimizer|optimizer_weights)(/|$)"), "a state of the optimizer"),
    (re.compile(r"(.*/)?seed_generator(/|$)"), "a state of random numbers"),
)


def open_keras(file: Source, max_bytes: int) -> Arrays | None:
    """Return the weights of a Keras file; None if gradtape wrote it, in format 1."""
    try:
        plain = converted(file, max_bytes, _CONVERTER)
    except LoadError as error:
        raise type(error)(f"{file.path}: {error}") from None
    found = open_tensors(plain, max_bytes)
    if found.layout == "gradtape":
        found.close()
        return None
    names = _short(list(found.entries))
    entries: dict[str, Entry] = {}
    for name, entry in found.entries.items():
        why = next((why for pattern, why in _NO_WEIGHTS if pattern.match(name)), None)
        if why is None:
            entries[names[name]] = entry
        else:
            found.left_out[name] = why
    file.close()
    return Arrays(file.path, entries, {}, found.left_out, "keras", found.close)


def _short(names: list[str]) -> dict[str, str]:
    """Return shorter names: in old files, the name of a layer and that of its weight.

    ``model_weights/dense/sequential/dense/kernel:0`` becomes ``dense/kernel``; names that would be
    equal are not shortened.
    """
    found = {}
    for name in names:
        layer, _, rest = name.removeprefix("model_weights/").partition("/")
        is_new = re.search(r"(^|[/\\])vars[/\\]\d+$", name)
        last = rest.rpartition("/")[2].removesuffix(":0")
        found[name] = name if is_new or not last else f"{layer}/{last}"
    taken = Counter(found.values())
    return {name: x if taken[x] == 1 else name for name, x in found.items()}
